// Package ownrepotest gives tests a fleet repo that declares a management cluster with a repository of its own, and a Git server for that.
package ownrepotest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// MastersID is the identity of the fleet of that repo.
const MastersID = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"

// New is a masters repo on disk whose management cluster eu has a repository of its own on a server, and the key that the masters
// repo is encrypted for.
func New(t *testing.T) (server *gittest.HTTPS, dir string, deps management.Deps, key secret.Key) {
	t.Helper()
	t.Setenv("CI", "true") // nobody has told git a name
	server, dir = gittest.NewHTTPS(t, gittest.Options{}), t.TempDir()
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	rules := secret.NewRules(secret.Keys{key}.Recipients())
	parsed, err := secret.ParseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	const file = "providers/eu/v1/clusters/prod/shop/password.sops.yaml"
	rule, err := parsed.For(file)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := secret.Encrypt([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {password: canary-7}\n"), rule)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"fleet.yaml": `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: masters}
spec:
  git: {url: "https://127.0.0.1:1/fleet.git"}
  environments: [{name: prod}]
  managementClusters:
  - {name: root, cloud: root, host: {type: embedded}, providers: [{name: docker}]}
  - name: eu
    parent: root
    cloud: eu
    repository:
      fleet: acme-eu
      git: {url: "` + server.URL + `", username: ` + server.Username + `, caFile: eu-ca.pem}
      environments: [prod]
    providers: [{name: docker}]
`,
		fleetrepo.IdentityFile:                         string(fleetrepo.IdentityContent(MastersID)),
		"providers/eu/v1/clusters/prod/shop/tags.yaml": "tags: {fleetctl.dev/fleet: " + MastersID + "}\n",
		"eu-ca.pem": string(server.CA), secret.RulesFile: string(rules), file: string(sealed),
	} {
		if err := atomicfile.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keyFile := filepath.Join(t.TempDir(), "masters.agekey")
	if err := os.WriteFile(keyFile, secret.Keys{key}.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"SOPS_AGE_KEY_FILE": keyFile, "A_TOKEN": "the root's", "EU_TOKEN": "eu's", "VAULT_TOKEN": "vault's"}
	return server, dir, management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
		LookupEnv: func(name string) (string, bool) { value, ok := environment[name]; return value, ok },
	}, key
}
