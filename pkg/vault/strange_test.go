package vault

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/guises"
)

const mountOf = "/v1/sys/internal/ui/mounts/"

// strangeVault answers the login, that it has a key-value engine at secret/ and one for AWS at aws/, and what is asked for by answer.
func strangeVault(t *testing.T, ttl int64, answer func(w http.ResponseWriter, path string)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/auth/token/lookup-self":
			_, _ = fmt.Fprintf(w, lookupAnswer, ttl)
		case strings.HasPrefix(r.URL.Path, mountOf+"secret/"):
			_, _ = w.Write([]byte(mount("secret/", "kv", `{"version":"2"}`)))
		case strings.HasPrefix(r.URL.Path, mountOf+"aws/"):
			_, _ = w.Write([]byte(mount("aws/", "aws", "null")))
		default:
			answer(w, r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func says(status int, text string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, _ string) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

// Each answer that gives no credential is told with what to do, and with nothing of what is secret.
func TestStrangeAnswers(t *testing.T) {
	leased := func(seconds int64) string {
		return fmt.Sprintf(`{"lease_id":"aws/creds/x/canary","renewable":true,"lease_duration":%d,"data":{"key":"canary"}}`, seconds)
	}
	for name, tc := range map[string]struct {
		ttl        int64
		at         string
		answer     func(http.ResponseWriter, string)
		want, hint string
	}{
		"wrapped": {
			0, "secret/x", says(200, `{"lease_id":"","data":null,"wrap_info":{"token":"hvs.canary","ttl":300,"creation_path":"x"}}`),
			"Vault wraps the answer", "min_wrapping_ttl",
		},
		"no time":          {0, "aws/creds/x", says(200, leased(0)), "ends at once", "more time"},
		"less than none":   {0, "aws/creds/x", says(200, leased(-5)), "ends at once", "more time"},
		"too often":        {0, "secret/x", says(429, `{"errors":["request path \"secret/x\": rate limit quota exceeded"]}`), "429", "again"},
		"not yet":          {0, "secret/x", says(412, `{"errors":["required index state not present"]}`), "412", "again"},
		"sealed":           {0, "secret/x", says(503, `{"errors":["Vault is sealed"]}`), "sealed", "vault status"},
		"other mount":      {0, "other/x", says(503, `{"errors":["Vault is sealed"]}`), "sealed", "vault status"},
		"too often, mount": {0, "other/x", says(429, `{"errors":[]}`), "429", "again"},
	} {
		s := strangeVault(t, tc.ttl, tc.answer)
		_, err := s.client(t, nil).Read(t.Context(), tc.at)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(diag.Hint(err), tc.hint) ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, hint %q", name, err, diag.Hint(err))
		}
	}
}

// However much a server has to say, an error is one that can be read.
func TestManyMessages(t *testing.T) {
	many := strings.Repeat(`"`+strings.Repeat("ä", 600)+`",`, 2000)
	s := strangeVault(t, 0, says(400, `{"errors":[`+strings.TrimSuffix(many, ",")+`]}`))
	_, err := s.client(t, nil).Read(t.Context(), "secret/x")
	if err == nil || len(err.Error()) > 4000 || !utf8.ValidString(err.Error()) || !strings.HasSuffix(err.Error(), "and 1,995 more messages") {
		t.Errorf("%d bytes: %.200v", len(fmt.Sprint(err)), err)
	}
}

// A lease that nobody lives to see the end of ends in the future, also where the token does.
func TestLongLeases(t *testing.T) {
	const most = int64(1)<<62 - 1
	for _, ttl := range []int64{0, most} {
		s := strangeVault(t, ttl, says(200, fmt.Sprintf(`{"lease_id":"a/b/c","renewable":true,"lease_duration":%d,"data":{"key":"v"}}`, most)))
		secret, err := s.client(t, nil).Read(t.Context(), "aws/creds/x")
		if err != nil || time.Until(*secret.Until) < 365*24*time.Hour || secret.Duration <= 0 {
			t.Errorf("%+v, %v", secret, err)
		}
		until, _, err := s.client(t, nil).Renew(t.Context(), "a/b/c", time.Hour)
		if err != nil || time.Until(until) < 365*24*time.Hour {
			t.Errorf("renewed until %s, %v", until, err)
		}
	}
}

// An authority that is not known is told with where it is to be named.
func TestUnknownAuthority(t *testing.T) {
	s := strangeVault(t, 0, says(200, kv2Answer))
	s.Config.ErrorLog = nil
	_, err := s.client(t, func(c *Config) { c.CA = nil }).Read(t.Context(), "secret/x")
	if err == nil || !strings.Contains(err.Error(), "unknown authority") || !strings.Contains(diag.Hint(err), "VAULT_CACERT") {
		t.Errorf("%v, hint %q", err, diag.Hint(err))
	}
}

// A server that repeats what a login has sent tells it to nobody, in whatever form.
func TestLoginsThatAreRepeated(t *testing.T) {
	const secret = `eyJ/+&<>"7f3a9c51e2.canary`
	for name, said := range map[string]string{
		"plain": secret, "query": url.QueryEscape(secret), "hexadecimal": hex.EncodeToString([]byte(secret)), "Go": strconv.Quote(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte("jwt=" + secret)),
	} {
		answer, err := json.Marshal(map[string]any{"errors": []string{"cannot use " + said + " here"}})
		if err != nil {
			t.Fatal(err)
		}
		s := &server{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(answer)
		}))}
		t.Cleanup(s.Close)
		for how, change := range map[string]func(*Config){
			"jwt":     func(c *Config) { c.Method, c.Role, c.JWT = MethodJWT, "x", secret },
			"approle": func(c *Config) { c.Method, c.RoleID, c.SecretID = MethodAppRole, "x", secret },
			"token":   func(c *Config) { c.Token = secret },
		} {
			_, err := s.client(t, change).Read(t.Context(), "secret/x")
			if err == nil || guises.In(err.Error(), 8, secret) || !strings.Contains(err.Error(), "cannot use") {
				t.Errorf("%s, %s: %v", how, name, err)
			}
		}
	}
}
