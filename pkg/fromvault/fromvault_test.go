package fromvault

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// awsVault is a Vault that makes a new key whenever it is asked for one, for an hour; renewed is how long a renewal lasts.
type awsVault struct {
	*httptest.Server
	mu      sync.Mutex
	made    int
	token   string // of the last request
	asked   []string
	renewed int
	ttl     int
	// left is what is left of every lease, as Vault says it; "" forbids to ask.
	left string
	// revoked are the leases that were given back, and onOther is called when something else is asked for.
	revoked []string
	cached  bool // a cache such as Vault Agent's is before it
	onOther func()
}

func newAWSVault(t *testing.T) *awsVault {
	t.Helper()
	v := &awsVault{renewed: 3600}
	v.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.asked, v.token = append(v.asked, r.Method+" "+r.URL.Path), r.Header.Get("X-Vault-Token")
		if v.cached {
			w.Header().Set("X-Cache", "HIT")
		}
		switch r.URL.Path {
		case "/v1/auth/token/lookup-self":
			_, _ = fmt.Fprintf(w, `{"data":{"ttl":%d}}`, v.ttl)
		case "/v1/aws/creds/fleet":
			v.made++
			_, _ = fmt.Fprintf(w, `{"lease_id":"aws/creds/fleet/%[1]d","renewable":true,"lease_duration":3600,
				"data":{"access_key":"AKIA%[1]d","secret_key":"canary-%[1]d","security_token":null},"auth":null}`, v.made)
		case "/v1/sys/leases/renew":
			var body struct {
				Lease string `json:"lease_id"`
			}
			_ = json.NewDecoder(r.Body).Decode(&body)
			_, _ = fmt.Fprintf(w, `{"lease_id":%q,"renewable":true,"lease_duration":%d,"data":null,"auth":null}`, body.Lease, v.renewed)
		case "/v1/sys/leases/revoke":
			var body struct {
				Lease string `json:"lease_id"`
			}
			_ = json.NewDecoder(r.Body).Decode(&body)
			v.revoked = append(v.revoked, body.Lease)
			w.WriteHeader(http.StatusNoContent)
		case "/v1/auth/approle/login":
			_, _ = w.Write([]byte(`{"auth":{"client_token":"hvs.canary-of-the-login","lease_duration":3600}}`))
		case "/v1/auth/token/revoke-self":
			w.WriteHeader(http.StatusNoContent)
		case "/v1/sys/leases/lookup":
			switch v.left {
			case "":
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"errors":["permission denied"]}`))
			case "none":
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"errors":["invalid lease"]}`))
			default:
				_, _ = fmt.Fprintf(w, `{"data":{"id":"x","renewable":true,"ttl":%s}}`, v.left)
			}
		default:
			if v.onOther != nil && strings.HasSuffix(r.URL.Path, "/other") {
				v.onOther()
			}
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"errors":["permission denied"]}`))
		}
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *awsVault) session(t *testing.T, env map[string]string) *session.Session {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"VAULT_ADDR": v.URL, "VAULT_TOKEN": "hvs.canary", "VAULT_CACERT": ca}
	maps.Copy(all, env)
	return &session.Session{
		Mgmt: &v1alpha1.ManagementCluster{}, Opts: session.Options{Dir: t.TempDir()},
		Deps: management.Deps{LookupEnv: func(name string) (string, bool) { value, ok := all[name]; return value, ok }},
	}
}

var awsVariables = []v1alpha1.Variable{
	{Name: "AWS_B64ENCODED_CREDENTIALS", Base64: true, Vault: &v1alpha1.VaultSecret{
		Path: "aws/creds/fleet", Text: "[default]\naws_access_key_id = ${access_key}\naws_secret_access_key = ${secret_key}\n",
	}},
	{Name: "AWS_KEY", Vault: &v1alpha1.VaultSecret{Path: "aws/creds/fleet", Field: "access_key"}},
}

// A lease is kept while it is good for long enough, renewed before it ends, and replaced where that is not to be had.
func TestLeases(t *testing.T) {
	v := newAWSVault(t)
	s := v.session(t, nil)
	client, err := Client(s)
	if err != nil {
		t.Fatal(err)
	}
	held := &credentials.Record{Providers: map[string]*credentials.Provider{}}
	run := func(after time.Duration) *leases {
		t.Helper()
		l := &leases{
			client: client, held: held, values: map[string]string{}, origins: map[string]credentials.Origin{}, now: time.Now().Add(after),
		}
		if !l.keep(t.Context(), awsVariables) {
			if err := l.read(t.Context(), awsVariables); err != nil {
				t.Fatal(err)
			}
		}
		p := &credentials.Provider{Variables: map[string]credentials.Value{}}
		for name, origin := range l.origins {
			p.Variables[name] = credentials.Value{Origin: origin}
		}
		held.Providers["infrastructure-aws"] = p
		return l
	}
	first := run(0)
	text, err := base64.StdEncoding.DecodeString(first.values["AWS_B64ENCODED_CREDENTIALS"])
	if err != nil || string(text) != "[default]\naws_access_key_id = AKIA1\naws_secret_access_key = canary-1\n" ||
		first.values["AWS_KEY"] != "AKIA1" {
		t.Errorf("values %q, %v", first.values, err)
	}
	if raw, _ := json.Marshal(held); strings.Contains(string(raw), "canary") || strings.Contains(string(raw), "AKIA1") {
		t.Errorf("the value is kept: %s", raw)
	}
	for _, step := range []struct {
		after         time.Duration
		renewed, made int // what a renewal gives in seconds, and how many keys there are then
		kept          bool
	}{
		{30 * time.Minute, 3600, 1, true},  // good for long enough
		{50 * time.Minute, 3600, 1, false}, // the end cannot be put off beyond what is needed, seen from there
		{0, 0, 2, true},
	} {
		v.renewed = step.renewed
		l := run(step.after)
		if (len(l.kept) == 2) != step.kept {
			t.Errorf("after %s: kept %v", step.after, l.kept)
		}
	}
	// renewed: asked again shortly before the end
	p := held.Providers["infrastructure-aws"]
	soon := time.Now().Add(5 * time.Minute)
	for name, value := range p.Variables {
		value.Until = &soon
		p.Variables[name] = value
	}
	v.renewed = 3600
	made := v.made
	if l := run(0); len(l.kept) != 2 || time.Until(*l.origins["AWS_KEY"].Until) < 50*time.Minute || v.made != made {
		t.Errorf("renewed: kept %v until %s, %d made", l.kept, l.origins["AWS_KEY"].Until, v.made)
	}
	if !slices.Contains(v.asked, "PUT /v1/sys/leases/renew") {
		t.Error("nothing was renewed")
	}
	// another question is another lease
	awsOther := slices.Clone(awsVariables)
	awsOther[1].Vault = &v1alpha1.VaultSecret{Path: "aws/creds/fleet", Field: "secret_key"}
	l := &leases{client: client, held: held, values: map[string]string{}, origins: map[string]credentials.Origin{}, now: time.Now()}
	if l.keep(t.Context(), awsOther) {
		t.Error("kept what was asked for otherwise")
	}
}

// Vault knows best when a lease ends: the record is of another clock, or somebody has revoked the lease, or extended it.
func TestLeasesAsVaultHasThem(t *testing.T) {
	v := newAWSVault(t)
	client, err := Client(v.session(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		left      string
		recorded  time.Duration // until the end, by the record
		renewable bool
		kept      bool
		ends      time.Duration
	}{
		"revoked":                       {left: "none", recorded: 50 * time.Minute, renewable: true},
		"recorded by a fast clock":      {left: "60", recorded: 3 * time.Hour, renewable: true, kept: true, ends: time.Hour}, // renewed
		"recorded by a slow clock":      {left: "3000", recorded: -time.Hour, renewable: true, kept: true, ends: 50 * time.Minute},
		"extended by another run":       {left: "3500", recorded: 5 * time.Minute, renewable: true, kept: true, ends: 3500 * time.Second},
		"of a token that ends":          {left: "3500", recorded: 40 * time.Minute, kept: true, ends: 40 * time.Minute},
		"of a token that ends soon":     {left: "3500", recorded: 5 * time.Minute},
		"ended by Vault's clock":        {left: "0", recorded: 40 * time.Minute},
		"Vault does not say":            {left: "", recorded: 40 * time.Minute, renewable: true, kept: true, ends: 40 * time.Minute},
		"Vault says something else":     {left: `"soon"`, recorded: 40 * time.Minute, renewable: true, kept: true, ends: 40 * time.Minute},
		"Vault says nothing of the end": {left: "null", recorded: 40 * time.Minute, renewable: true, kept: true, ends: 40 * time.Minute},
	} {
		v.left = c.left
		end := now.Add(c.recorded)
		l := &leases{client: client, values: map[string]string{}, origins: map[string]credentials.Origin{}, now: now}
		origin := credentials.Origin{Lease: "aws/creds/fleet/canary", Until: &end, Duration: time.Hour, Renewable: c.renewable}
		p := &credentials.Provider{Variables: map[string]credentials.Value{}}
		for _, variable := range awsVariables {
			origin.Asked = l.asked(variable)
			p.Variables[variable.Name] = credentials.Value{Origin: origin}
		}
		l.held = &credentials.Record{Providers: map[string]*credentials.Provider{"infrastructure-aws": p}}
		if kept := l.keep(t.Context(), awsVariables); kept != c.kept {
			t.Errorf("%s: kept is %v", name, kept)
		} else if kept {
			if off := l.origins["AWS_KEY"].Until.Sub(now) - c.ends; off.Abs() > time.Minute {
				t.Errorf("%s: it ends at %s, which is off by %s", name, l.origins["AWS_KEY"].Until, off)
			}
		}
	}
}

// What is missing to reach Vault is said before anything is made, with what to do, and with nothing of what is secret.
func TestVaultConfiguration(t *testing.T) {
	v := newAWSVault(t)
	for name, c := range map[string]struct {
		env   map[string]string
		vault v1alpha1.Vault
		want  string
	}{
		"nowhere":       {map[string]string{"VAULT_ADDR": ""}, v1alpha1.Vault{}, "nothing says where it is"},
		"in clear":      {map[string]string{"VAULT_ADDR": "http://vault.example.com"}, v1alpha1.Vault{}, "without TLS"},
		"no authority":  {nil, v1alpha1.Vault{CAFile: "none.pem"}, "certificate authorities of Vault"},
		"no identity":   {nil, v1alpha1.Vault{Method: v1alpha1.VaultJWT, Role: "x"}, "VAULT_ID_TOKEN"},
		"no token file": {nil, v1alpha1.Vault{Method: v1alpha1.VaultJWT, Role: "x", JWTFile: "none"}, "log in to Vault"},
	} {
		s := v.session(t, c.env)
		s.Mgmt.Vault = c.vault
		if _, err := Client(s); err == nil || !strings.Contains(err.Error(), c.want) || diag.Hint(err) == "" ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, hint %q", name, err, diag.Hint(err))
		}
	}
	s := v.session(t, map[string]string{"VAULT_ID_TOKEN": "eyJ.x.y"})
	s.Mgmt.Vault = v1alpha1.Vault{Method: v1alpha1.VaultJWT, Role: "x"}
	if _, err := Client(s); err != nil {
		t.Error(err)
	}
}
