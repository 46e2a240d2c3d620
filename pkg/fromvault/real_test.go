//go:build clouds

package fromvault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/vault/vaulttest"
)

// A lease of a real Vault is renewed before its end, and replaced when Vault has revoked it or its maximum age comes.
func TestRealVault(t *testing.T) {
	v := vaulttest.Start(t)
	v.AWS(t, "aws", "1h", "2h")
	v.AWS(t, "brief", "1s", "2s")
	env := map[string]string{"VAULT_ADDR": v.Address, "VAULT_TOKEN": v.Token + "\n"}
	s := &session.Session{
		Mgmt: &v1alpha1.ManagementCluster{}, Opts: session.Options{Dir: t.TempDir()},
		Deps: management.Deps{LookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok }},
	}
	client, err := Client(s)
	if err != nil {
		t.Fatal(err)
	}
	// run is a run of init after that time, with the record of an earlier one: the value, if it is new, and the record.
	run := func(path string, origin credentials.Origin, after time.Duration) (string, credentials.Origin) {
		t.Helper()
		group := []v1alpha1.Variable{{Name: "KEYS", Vault: &v1alpha1.VaultSecret{
			Path: path + "/creds/fleet", Text: "${access_key} ${secret_key}",
		}}}
		held := &credentials.Record{Providers: map[string]*credentials.Provider{
			"infrastructure-aws": {Variables: map[string]credentials.Value{"KEYS": {Origin: origin}}},
		}}
		l := &leases{
			client: client, held: held, values: map[string]string{}, origins: map[string]credentials.Origin{}, now: time.Now().Add(after),
		}
		if !l.keep(t.Context(), group) {
			if err := l.read(t.Context(), group); err != nil {
				t.Fatal(err)
			}
		}
		return l.values["KEYS"], l.origins["KEYS"]
	}

	value, first := run("aws", credentials.Origin{}, 0)
	keys := strings.Fields(value)
	if len(keys) != 2 || !strings.HasPrefix(keys[0], "AKIA") || first.Lease == "" || !first.Renewable || first.Duration != time.Hour {
		t.Fatalf("%d keys, %+v", len(keys), first)
	}
	for _, key := range keys {
		if strings.Contains(fmt.Sprintf("%+v", first), key) {
			t.Error("the record has the value")
		}
	}
	if value, kept := run("aws", first, 30*time.Minute); value != "" || kept.Lease != first.Lease || !kept.Until.Equal(*first.Until) {
		t.Errorf("after half of its time the lease is %+v", kept)
	}
	early := first
	soon := time.Now().Add(5 * time.Minute)
	early.Until = &soon
	value, renewed := run("aws", early, 0)
	if value != "" || renewed.Lease != first.Lease || time.Until(*renewed.Until) < 50*time.Minute {
		t.Errorf("shortly before its end the lease becomes %+v", renewed)
	}
	value, second := run("aws", renewed, 110*time.Minute)
	if value == "" || second.Lease == first.Lease {
		t.Errorf("where a renewal no longer gives enough time, the lease is %+v", second)
	}

	value, brief := run("brief", credentials.Origin{}, 0)
	v.Ended(t, brief.Lease)
	again, replaced := run("brief", brief, 0)
	if again == "" || again == value || replaced.Lease == brief.Lease {
		t.Errorf("what Vault has revoked becomes %+v", replaced)
	}
}
