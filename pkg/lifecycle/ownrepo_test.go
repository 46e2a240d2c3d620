package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

const mastersID = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"

// ownRepoOf is a masters repo on disk whose management cluster eu has a repository of its own on a server, and the key that the masters
// repo is encrypted for.
func ownRepoOf(t *testing.T) (server *gittest.HTTPS, dir string, deps management.Deps, key secret.Key) {
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
		fleetrepo.IdentityFile:                         string(fleetrepo.IdentityContent(mastersID)),
		"providers/eu/v1/clusters/prod/shop/tags.yaml": "tags: {fleetctl.dev/fleet: " + mastersID + "}\n",
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

// keptKeys are the keys that the state folder has for a fleet, and no others.
func keptKeys(deps management.Deps, fleet state.Fleet) (secret.Keys, error) {
	content, err := os.ReadFile(deps.Store.KeyFile(fleet))
	if err != nil {
		return nil, err
	}
	return secret.ParseKeys(content)
}

// An empty repository gets what belongs to the management cluster, an identity, and an age key of its own: the masters' key opens nothing
// in it. Another machine takes what is there.
func TestOpenOwnRepo(t *testing.T) {
	server, dir, deps, mastersKey := ownRepoOf(t)
	o := OwnRepoOptions{Dir: dir, Cluster: "eu", Git: change.Credentials{Token: server.Token}}
	if _, err := OpenOwnRepo(t.Context(), deps, OwnRepoOptions{Dir: dir, Cluster: "eu", At: t.TempDir()}); err == nil ||
		!strings.Contains(diag.Hint(err), "--own-git-token-file") && !strings.Contains(err.Error(), "401") {
		t.Errorf("without a token: %v (%s)", err, diag.Hint(err))
	}
	own, err := OpenOwnRepo(t.Context(), deps, o)
	if err != nil {
		t.Fatal(err)
	}
	head := server.Head(t, "main")
	if !own.Made || own.Commit != head {
		t.Errorf("%+v, and the server has %s", own, head)
	}
	if fleet := server.File(t, "main", v1alpha1.FileName); !strings.Contains(fleet, "name: acme-eu") ||
		!strings.Contains(fleet, "parent: root") || strings.Contains(fleet, "repository:") {
		t.Errorf("its fleet.yaml:\n%s", fleet)
	}
	id, err := fleetrepo.ReadIdentity(own.Dir)
	if err != nil || id == "" {
		t.Fatalf("its identity is %q, %v", id, err)
	}
	if id == mastersID {
		t.Error("it has the identity of the masters")
	}
	if tags := server.File(t, "main", "providers/eu/v1/clusters/prod/shop/tags.yaml"); strings.TrimSpace(
		tags) != "tags: {fleetctl.dev/fleet: "+id+"}" {
		t.Errorf("a cloud would be told of another fleet: %s", tags)
	}
	const file = "providers/eu/v1/clusters/prod/shop/password.sops.yaml"
	sealed := []byte(server.File(t, "main", file))
	if _, err := secret.Decrypt(sealed, secret.Keys{mastersKey}); err == nil {
		t.Error("the key of the masters opens its secrets")
	}
	keys, err := keptKeys(deps, state.Fleet{ID: id, Name: "acme-eu"})
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys are kept, %v", len(keys), err)
	}
	if plain, err := secret.Decrypt(sealed, keys); err != nil || !strings.Contains(string(plain), "canary-7") {
		t.Errorf("its own key does not: %v", err)
	}
	if rules := server.File(t, "main", secret.RulesFile); !strings.Contains(rules, keys[0].Recipient()) ||
		strings.Contains(rules, mastersKey.Recipient()) {
		t.Errorf("its rules:\n%s", rules)
	}
	more, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	first, err := own.Reseal("providers/eu/v1/clusters/prod/later/password.sops.yaml", more)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := secret.Decrypt(first, keys); err != nil || !strings.Contains(string(plain), "canary-7") {
		t.Errorf("what comes later: %v", err)
	}
	if again, err := own.Reseal("providers/eu/v1/clusters/prod/later/password.sops.yaml", more); err != nil || string(again) != string(first) {
		t.Errorf("another try makes another file: %v", err)
	}
	for _, at := range []string{"", filepath.Join(t.TempDir(), "elsewhere")} {
		o.At = at
		again, err := OpenOwnRepo(t.Context(), deps, o)
		if err != nil || again.Made || again.Commit != head || server.Head(t, "main") != head {
			t.Errorf("again, at %q: %+v, %v", at, again, err)
		}
	}
}

// A run for a management cluster with a repository of its own sees what its fleet.yaml names of the environment, and nothing of its
// parent's.
func TestNarrowed(t *testing.T) {
	_, _, deps, _ := ownRepoOf(t)
	value := "in clear"
	m := &v1alpha1.ManagementCluster{Providers: []v1alpha1.Provider{{Name: "docker",
		Variables: []v1alpha1.Variable{{Name: "A_REGION", Value: &value}, {Name: "SOME_TOKEN", Env: "EU_TOKEN"}}}}}
	narrow := session.Narrowed(deps, m)
	for name, want := range map[string]string{"EU_TOKEN": "eu's", "A_TOKEN": "", "SOPS_AGE_KEY_FILE": "", "VAULT_TOKEN": "", "A_REGION": ""} {
		if got, ok := narrow.LookupEnv(name); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %t", name, got, ok)
		}
	}
	m.Providers[0].Variables = append(m.Providers[0].Variables,
		v1alpha1.Variable{Name: "A_SECRET", Vault: &v1alpha1.VaultSecret{Path: "aws/creds/eu", Field: "key"}})
	if got, _ := session.Narrowed(deps, m).LookupEnv("VAULT_TOKEN"); got != "vault's" {
		t.Errorf("Vault is reached with %q", got)
	}
	if got, _ := deps.LookupEnv("A_TOKEN"); got != "the root's" {
		t.Errorf("the root has %q", got)
	}
}
