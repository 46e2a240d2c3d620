package fromvault

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// One of several secrets cannot be read, so no cluster gets the others: what Vault has leased for them goes back, also after an interrupt.
func TestLeasesOfARunThatFailsGoBack(t *testing.T) {
	groups := func(path string) [][]v1alpha1.Variable {
		return [][]v1alpha1.Variable{awsVariables, {{Name: "OTHER", Vault: &v1alpha1.VaultSecret{Path: path, Field: "password"}}}}
	}
	for name, tc := range map[string]struct {
		method      v1alpha1.VaultMethod
		back        string // the request
		interrupted bool
		cached      bool // Vault has answered with a lease that the cluster uses
	}{
		"own token": {v1alpha1.VaultToken, "PUT /v1/sys/leases/revoke", false, false},
		"login":     {v1alpha1.VaultAppRole, "POST /v1/auth/token/revoke-self", false, false},
		"interrupt": {v1alpha1.VaultToken, "PUT /v1/sys/leases/revoke", true, false},

		"own token, lease in use": {v1alpha1.VaultToken, "", false, true},
		"login, lease in use":     {v1alpha1.VaultAppRole, "", false, true},
		"own token, cache":        {v1alpha1.VaultToken, "", false, true},
		"login, cache":            {v1alpha1.VaultAppRole, "", false, true},
	} {
		v := newAWSVault(t)
		s := v.session(t, map[string]string{"VAULT_ROLE_ID": "fleet", "VAULT_SECRET_ID": "canary"})
		s.Mgmt.Vault.Method = tc.method
		client, err := Client(s)
		if err != nil {
			t.Fatal(err)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		t.Cleanup(interrupt)
		if tc.interrupted {
			v.onOther = interrupt
		}
		l := &leases{
			client: client, held: &credentials.Record{}, values: map[string]string{}, origins: map[string]credentials.Origin{}, now: time.Now(),
		}
		if v.cached = strings.HasSuffix(name, "cache"); tc.cached && !v.cached {
			l.held.Providers = map[string]*credentials.Provider{
				"infrastructure-aws": {Variables: map[string]credentials.Value{"AWS_KEY": {Origin: credentials.Origin{Lease: "aws/creds/fleet/1"}}}},
			}
		}
		err = l.get(ctx, groups("secret/other"))
		if err == nil || !strings.Contains(err.Error(), "variable OTHER") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
		if tc.cached {
			if back := slices.IndexFunc(v.asked, func(request string) bool { return strings.Contains(request, "revoke") }); back >= 0 {
				t.Errorf("%s: it asked for %s", name, v.asked[back])
			}
			continue
		}
		if !tc.interrupted && !strings.Contains(diag.Hint(err), "the token's policy has to allow it") {
			t.Errorf("%s: hint %q", name, diag.Hint(err))
		}
		if v.made != 1 || !slices.Contains(v.asked, tc.back) {
			t.Errorf("%s: %d leases were made, and asked for: %v", name, v.made, v.asked)
		}
		if tc.method == v1alpha1.VaultToken && !slices.Equal(v.revoked, []string{"aws/creds/fleet/1"}) {
			t.Errorf("%s: revoked %v", name, v.revoked)
		}
	}
}
