package reclaim

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
)

// keyVault is a Vault on this machine that makes a key of the simulated AWS for whoever asks.
type keyVault struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	// token is the token that is good.
	token string
}

func newKeyVault(t *testing.T) *keyVault {
	t.Helper()
	v := &keyVault{token: "hvs.canary"}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.asked = append(v.asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1/"))
		at := strings.TrimPrefix(r.URL.Path, "/v1/")
		switch {
		case at == "auth/approle/login":
			fmt.Fprintf(w, `{"auth":{"client_token":%q,"lease_duration":600}}`, v.token)
		case r.Header.Get("X-Vault-Token") != v.token:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"errors":["permission denied"]}`)
		case at == "auth/token/lookup-self":
			fmt.Fprint(w, `{"data":{"ttl":600}}`)
		case at == "aws/creds/fleet":
			fmt.Fprint(w, `{"lease_id":"aws/creds/fleet/1","renewable":true,"lease_duration":3600,
				"data":{"access_key":"AKIAX","secret_key":"canary"}}`)
		case at == "sys/leases/revoke", at == "auth/token/revoke-self":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"errors":[]}`)
		}
	}))
	t.Cleanup(v.Close)
	return v
}

// count is how often the API was asked this.
func (v *keyVault) count(question string) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, asked := range v.asked {
		if asked == question {
			n++
		}
	}
	return n
}

const keyFromVault = `variables: [{name: AWS_B64ENCODED_CREDENTIALS, base64: true, vault: {path: aws/creds/fleet,
    text: "[default]\naws_access_key_id = ${access_key}\naws_secret_access_key = ${secret_key}\n"}}]`

// Credentials that come from Vault are read there, once for a command, and given back at its end, even if it was interrupted.
func TestOrphansWithCredentialsFromVault(t *testing.T) {
	for name, c := range map[string]struct {
		login       string
		environment map[string]string
		back        string
	}{
		"a token of the user": {"", map[string]string{"VAULT_TOKEN": "hvs.canary"}, "PUT sys/leases/revoke"},
		"a login for this run": {
			"vault: {method: approle}, ", map[string]string{"VAULT_ROLE_ID": "r", "VAULT_SECRET_ID": "s"}, "POST auth/token/revoke-self",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, v := newSimulatedAWS(t), newKeyVault(t)
			c.environment["VAULT_ADDR"] = v.URL
			s.management, s.variables = c.login, keyFromVault
			s.vault = fromvault.NewReader(t.TempDir(), func(name string) (string, bool) { value, ok := c.environment[name]; return value, ok })
			for range 2 { // as a deletion looks several times
				if resources, _ := listed(s.look(t, "", c.environment)); !slices.Equal(resources, []string{"vpc-" + ownAccount}) {
					t.Errorf("listed %v", resources)
				}
			}
			if n := v.count("GET aws/creds/fleet"); n != 1 {
				t.Errorf("Vault made %d keys", n)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.vault.GiveBack(ctx); err != nil || v.count(c.back) != 1 {
				t.Errorf("%v, Vault was asked %q", err, v.asked)
			}
			for _, other := range []string{"PUT sys/leases/revoke", "POST auth/token/revoke-self"} {
				if other != c.back && v.count(other) > 0 {
					t.Errorf("Vault was asked %s", other)
				}
			}
		})
	}
}

// A Vault that does not give them is an account that was not asked, never one without orphans.
func TestOrphansWithoutAnswerOfVault(t *testing.T) {
	v := newKeyVault(t)
	for name, c := range map[string]struct {
		environment map[string]string
		why         string
	}{
		"no server":   {map[string]string{}, "nothing says where it is"},
		"no token":    {map[string]string{"VAULT_ADDR": v.URL}, "there is no token for Vault"},
		"wrong token": {map[string]string{"VAULT_ADDR": v.URL, "VAULT_TOKEN": "hvs.other"}, "permission denied"},
	} {
		s := newSimulatedAWS(t)
		s.variables = keyFromVault
		s.vault = fromvault.NewReader(t.TempDir(), func(name string) (string, bool) { value, ok := c.environment[name]; return value, ok })
		r := s.look(t, "", c.environment)
		if r.Complete || len(r.Clouds) != 1 || len(r.Clouds[0].Problems) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		if p := r.Clouds[0].Problems[0]; !strings.Contains(p.Text, c.why) || p.Hint == "" || strings.Contains(p.Text, "canary") {
			t.Errorf("%s: %+v", name, p)
		}
		if err := s.vault.GiveBack(t.Context()); err != nil {
			t.Errorf("%s: %s", name, diag.Because(err))
		}
	}
	if n := v.count("PUT sys/leases/revoke"); n > 0 {
		t.Errorf("%d leases of nobody were revoked", n)
	}
}
