package vault

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// The answers are Vault's own, as its documentation of the HTTP API has them.
const (
	loginAnswer = `{"request_id":"8b7f","lease_id":"","renewable":false,"lease_duration":0,"data":null,"wrap_info":null,"warnings":null,
"auth":{"client_token":"hvs.logged-in","accessor":"acc","policies":["default","fleet"],"token_policies":["default","fleet"],"metadata":{"role_name":"fleet"},
"lease_duration":%d,"renewable":true,"entity_id":"e","token_type":"service","orphan":true,"mfa_requirement":null,"num_uses":0}}`
	lookupAnswer = `{"request_id":"1","lease_id":"","renewable":false,"lease_duration":0,"data":{"accessor":"acc","creation_time":1700000000,"creation_ttl":%[1]d,
"display_name":"token","entity_id":"","expire_time":null,"explicit_max_ttl":0,"id":"hvs.given","meta":null,"num_uses":0,"orphan":true,"path":"auth/token/create",
"policies":["fleet"],"ttl":%[1]d,"type":"service"},"wrap_info":null,"warnings":null,"auth":null}`
	awsAnswer = `{"request_id":"2","lease_id":"aws/creds/capa/abcd","renewable":true,"lease_duration":2764800,
"data":{"access_key":"AKIATEST","secret_key":"s3cr3t/key","security_token":null},"wrap_info":null,"warnings":null,"auth":null}`
	kv1Answer = `{"request_id":"3","lease_id":"","renewable":false,"lease_duration":2764800,"data":{"user":"me","pin":1234567890123456789},"wrap_info":null,"warnings":null,"auth":null}`
	kv2Answer = `{"request_id":"4","lease_id":"","renewable":false,"lease_duration":0,"data":{"data":{"user":"me","password":"p"},
"metadata":{"created_time":"2026-03-22T02:24:06.945319214Z","custom_metadata":null,"deletion_time":"","destroyed":false,"version":2}},"wrap_info":null,"warnings":null,"auth":null}`
	kv2Deleted = `{"request_id":"5","lease_id":"","renewable":false,"lease_duration":0,"data":{"data":null,
"metadata":{"created_time":"2026-03-22T02:24:06Z","deletion_time":"2026-03-23T00:00:00Z","destroyed":false,"version":2}},"wrap_info":null,"warnings":null,"auth":null}`
	renewAnswer = `{"request_id":"6","lease_id":"aws/creds/capa/abcd","renewable":true,"lease_duration":3600,"data":null,"wrap_info":null,"warnings":null,"auth":null}`
	mountAnswer = `{"request_id":"7","lease_id":"","renewable":false,"lease_duration":0,"data":{"path":%q,"type":%q,"options":%s,"description":"","config":{}},"auth":null}`
)

// server simulates Vault: it has an answer for each "METHOD path". It keeps the bodies and headers of the requests.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	bodies  map[string]string
	headers map[string]http.Header
}

func newServer(t *testing.T, answers map[string]string) *server {
	t.Helper()
	s := &server{bodies: map[string]string{}, headers: map[string]http.Header{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/")
		body := new(strings.Builder)
		var fields map[string]any
		if r.Body != nil && json.NewDecoder(r.Body).Decode(&fields) == nil {
			raw, _ := json.Marshal(fields)
			body.Write(raw)
		}
		s.mu.Lock()
		s.bodies[key], s.headers[key] = body.String(), r.Header.Clone()
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[key]
		switch {
		case !ok:
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"errors":["1 error occurred:\n\t* permission denied\n\n"]}`))
		case strings.HasPrefix(answer, "http"):
			http.Redirect(w, r, answer, http.StatusTemporaryRedirect)
		case answer == "404":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"errors":[]}`))
		case answer == "sealed":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"errors":["Vault is sealed"]}`))
		case strings.HasPrefix(answer, "deleted"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(kv2Deleted))
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) config(change func(*Config)) Config {
	c := Config{
		Address: s.URL, Method: MethodToken, Token: "hvs.given",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}
	if change != nil {
		change(&c)
	}
	return c
}

func (s *server) client(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	c, err := New(s.config(change))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mount(path, kind, options string) string { return fmt.Sprintf(mountAnswer, path, kind, options) }

func TestRead(t *testing.T) {
	s := newServer(t, map[string]string{
		"GET auth/token/lookup-self":                      fmt.Sprintf(lookupAnswer, 0),
		"GET aws/creds/capa":                              awsAnswer,
		"GET sys/internal/ui/mounts/aws/creds/capa":       mount("aws/", "aws", "null"),
		"GET old/vsphere":                                 kv1Answer,
		"GET sys/internal/ui/mounts/old/vsphere":          mount("old/", "kv", `{"version":"1"}`),
		"GET team/kv/data/clouds/azure":                   kv2Answer,
		"GET sys/internal/ui/mounts/team/kv/clouds/azure": mount("team/kv/", "kv", `{"version":"2"}`),
		"GET hidden/data/azure":                           kv2Answer, // who may not ask for the mount
		"GET secret/data/gone":                            "deleted",
		"GET sys/internal/ui/mounts/secret/gone":          mount("secret/", "kv", `{"version":"2"}`),
	})
	c := s.client(t, func(c *Config) { c.Namespace = "admin/team-a" })
	for at, want := range map[string]map[string]string{
		"aws/creds/capa":       {"access_key": "AKIATEST", "secret_key": "s3cr3t/key"},
		"old/vsphere":          {"user": "me", "pin": "1234567890123456789"},
		"team/kv/clouds/azure": {"user": "me", "password": "p"},
		"hidden/data/azure":    {"user": "me", "password": "p"},
	} {
		secret, err := c.Read(t.Context(), at)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		for field, value := range want {
			if got, err := secret.Field(field); err != nil || got != value {
				t.Errorf("%s: %s is %q, %v", at, field, got, err)
			}
		}
		if leased := at == "aws/creds/capa"; leased != (secret.Lease != "") || leased != (secret.Until != nil) {
			t.Errorf("%s: lease %q until %v", at, secret.Lease, secret.Until)
		}
	}
	h := s.headers["GET aws/creds/capa"]
	if h.Get("X-Vault-Token") != "hvs.given" || h.Get("X-Vault-Namespace") != "admin/team-a" || h.Get("X-Vault-Request") != "true" {
		t.Errorf("headers %v", h)
	}
	secret, err := c.Read(t.Context(), "aws/creds/capa")
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(*secret.Until); left < 767*time.Hour || left > 768*time.Hour || !secret.Renewable ||
		secret.Duration != 768*time.Hour {
		t.Errorf("lease of %s ends in %s", secret.Duration, left)
	}
	for _, field := range []string{"security_token", "nonsuch"} {
		if _, err := secret.Field(field); err == nil || !strings.Contains(diag.Hint(err), "access_key, secret_key") ||
			strings.Contains(diag.Hint(err), "s3cr3t") {
			t.Errorf("%s: %v, %s", field, err, diag.Hint(err))
		}
	}
	if _, err := c.Read(t.Context(), "secret/gone"); err == nil || !strings.Contains(err.Error(), "is deleted") ||
		!strings.Contains(diag.Hint(err), "vault kv put") {
		t.Errorf("of what is deleted: %v, hint %s", err, diag.Hint(err))
	}
}

// A lease ends with the token that made it.
func TestLeaseEndsWithToken(t *testing.T) {
	s := newServer(t, map[string]string{
		"POST auth/ci/login": fmt.Sprintf(loginAnswer, 600), "GET aws/creds/capa": awsAnswer,
	})
	c := s.client(t, func(c *Config) {
		c.Method, c.Mount, c.RoleID, c.SecretID, c.Token = MethodAppRole, "ci", "role", "secret-id", ""
	})
	secret, err := c.Read(t.Context(), "aws/creds/capa")
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(*secret.Until); left > 10*time.Minute || left < 9*time.Minute || secret.Renewable {
		t.Errorf("ends in %s, renewable %v", left, secret.Renewable)
	}
	if s.bodies["POST auth/ci/login"] != `{"role_id":"role","secret_id":"secret-id"}` ||
		s.headers["GET aws/creds/capa"].Get("X-Vault-Token") != "hvs.logged-in" {
		t.Errorf("logged in with %s", s.bodies["POST auth/ci/login"])
	}
	if s.headers["POST auth/ci/login"].Get("X-Vault-Token") != "" {
		t.Error("a token was sent to log in")
	}
}

func TestLoginWithIdentity(t *testing.T) {
	for method, body := range map[Method]string{
		MethodKubernetes: `{"jwt":"eyJ.a.b","role":"fleet"}`, MethodJWT: `{"jwt":"eyJ.a.b","role":"fleet"}`,
	} {
		s := newServer(t, map[string]string{"POST auth/" + string(method) + "/login": fmt.Sprintf(loginAnswer, 0), "GET old/x": kv1Answer})
		c := s.client(t, func(c *Config) { c.Method, c.Role, c.JWT, c.Token = method, "fleet", "eyJ.a.b", "" })
		if _, err := c.Read(t.Context(), "old/x"); err != nil {
			t.Error(err)
		}
		if got := s.bodies["POST auth/"+string(method)+"/login"]; got != body {
			t.Errorf("%s: logged in with %s", method, got)
		}
	}
}

func TestRenew(t *testing.T) {
	s := newServer(t, map[string]string{
		"GET auth/token/lookup-self": fmt.Sprintf(lookupAnswer, 0), "PUT sys/leases/renew": renewAnswer,
	})
	c := s.client(t, nil)
	until, renewable, err := c.Renew(t.Context(), "aws/creds/capa/abcd", 2*time.Hour)
	if left := time.Until(until); err != nil || !renewable || left > time.Hour || left < 59*time.Minute {
		t.Errorf("renewed until %s, %v, %v", until, renewable, err)
	}
	if got := s.bodies["PUT sys/leases/renew"]; got != `{"increment":7200,"lease_id":"aws/creds/capa/abcd"}` {
		t.Errorf("asked with %s", got)
	}
}

// No error shows what was sent to Vault, or a secret from Vault. Each error says what to do.
func TestErrors(t *testing.T) {
	elsewhere := newServer(t, map[string]string{})
	answers := map[string]string{
		"GET auth/token/lookup-self": fmt.Sprintf(lookupAnswer, 0),
		"GET secret/none":            "404", "GET secret/sealed": "sealed", "GET secret/away": elsewhere.URL + "/v1/secret/away",
		"GET secret/garbage": "canary-value not json", "GET secret/list": `{"data":["canary-value"]}`, "GET secret/null": `{"data":null}`,
	}
	s := newServer(t, answers)
	c := s.client(t, nil)
	for at, want := range map[string]string{
		"secret/denied": "403", "secret/none": "404", "secret/sealed": "Vault is sealed", "secret/away": "", "secret/garbage": "not JSON",
		"secret/list": "no fields",
		"secret/null": "no fields", "sys/raw/x": "not the path", "../x": "not the path", "secret/../../sys/x": "not the path",
		"secret/x?y": "not the path", "x": "not the path",
	} {
		_, err := c.Read(t.Context(), at)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") ||
			strings.Contains(err.Error(), "hvs.given") {
			t.Errorf("%s: %v", at, err)
		}
		if diag.Hint(err) == "" && want != "not JSON" {
			t.Errorf("%s: no hint with %v", at, err)
		}
	}
	var left *sameorigin.Error
	if _, err := c.Read(t.Context(), "secret/away"); !errors.As(err, &left) || len(elsewhere.headers) != 0 {
		t.Errorf("%v, and the other server was asked with %v", err, elsewhere.headers)
	}
	for name, change := range map[string]func(*Config){
		"no token":     func(c *Config) { c.Token = "" },
		"no secret id": func(c *Config) { c.Method, c.RoleID = MethodAppRole, "x" },
		"no identity":  func(c *Config) { c.Method = MethodJWT },
		"method":       func(c *Config) { c.Method = "nonsuch" },
		"denied":       func(c *Config) { c.Method, c.JWT = MethodJWT, "eyJ.canary.x" },
	} {
		if _, err := s.client(t, change).Read(t.Context(), "old/x"); err == nil || diag.Hint(err) == "" ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, hint %s", name, err, diag.Hint(err))
		}
	}
	// a login that is refused is told as a login, not as a policy that is too narrow
	for method, hint := range map[Method]string{MethodToken: "vault login", MethodJWT: "check the mount"} {
		refuses := newServer(t, map[string]string{})
		c := refuses.client(t, func(c *Config) { c.Method, c.JWT = method, "eyJ.canary.x" })
		if _, err := c.Read(t.Context(), "old/x"); err == nil || !strings.Contains(diag.Hint(err), hint) {
			t.Errorf("%s: %v, hint %s", method, err, diag.Hint(err))
		}
	}
	for _, address := range []string{
		"", "vault.example.com", "ftp://x", "https://user:canary@vault.example.com", "http://vault.example.com",
		"https://x?token=canary",
	} {
		if _, err := New(Config{Address: address}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("address %s: %v", address, err)
		}
	}
	if _, err := New(Config{Address: "https://x", CA: []byte("none")}); err == nil {
		t.Error("took authorities that are none")
	}
}
