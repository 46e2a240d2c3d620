package ownrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/ownrepo/ownrepotest"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Each field that a file has encrypted stays encrypted in the repository of a management cluster's own, whatever the rule there says of
// fields: in what that repository begins with, and in what a transfer brings there.
func TestResealedAsTheFileSays(t *testing.T) {
	server, dir, deps, key := ownrepotest.New(t)
	r, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.Add(fleetrepo.AddOptions{
		Name: "early", Environment: "prod", ManagementCluster: "root", Flavour: "in-memory",
		KubernetesVersion: "v1.36.3",
	})
	if err == nil {
		_, err = e.Changes.Apply(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, content []byte) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := atomicfile.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const begins, comes = "providers/eu/v1/clusters/prod/shop/", "providers/root/v1/clusters/prod/early/"
	regexes := map[string]string{"wholly.sops.yaml": "", "own.sops.yaml": "^(password|token)$"}
	for name, regex := range regexes {
		sealed, err := secret.Encrypt([]byte("password: canary-8\nstringData: {token: canary-9}\n"),
			secret.Rule{Recipients: secret.Keys{key}.Recipients(), EncryptedRegex: regex})
		if err != nil {
			t.Fatal(err)
		}
		put(begins+name, sealed)
		put(comes+name, sealed)
	}
	own, err := Open(t.Context(), deps, Options{Dir: dir, Cluster: "eu", Git: change.Credentials{Token: server.Token}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := fleetrepo.ReadIdentity(own.Dir)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keptKeys(deps, state.Fleet{ID: id, Name: "acme-eu"})
	if err != nil {
		t.Fatal(err)
	}
	into, err := fleetrepo.Open(own.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = fleetrepo.Open(dir); err != nil {
		t.Fatal(err)
	}
	e, err = r.TransferInto(into, fleetrepo.TransferOptions{Cluster: "early", To: "eu"}, own.Reseal)
	if err != nil {
		t.Fatal(err)
	}
	arrived := map[string]string{}
	for _, f := range e.Changes.Files() {
		arrived[f.Path] = string(f.Content)
	}
	for name, regex := range regexes {
		for place, sealed := range map[string]string{
			"the first commit": server.File(t, "main", begins+name),
			"a transfer":       arrived["providers/eu/v1/clusters/prod/early/"+name],
		} {
			if strings.Contains(sealed, "canary") || strings.Contains(sealed, "encrypted_regex") != (regex != "") ||
				!strings.Contains(sealed, regex) {
				t.Errorf("%s has %s so:\n%s", place, name, sealed)
			}
			if plain, err := secret.Decrypt([]byte(sealed), keys); err != nil || !strings.Contains(string(plain), "password: canary-8") ||
				!strings.Contains(string(plain), "canary-9") {
				t.Errorf("%s, %s: %s, %v", place, name, plain, err)
			}
		}
	}
	for _, other := range []string{
		"password: ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\nsops:\n  kms: [{arn: a}]\n  mac: m\n",
		"a_password=ENC[AES256_GCM,data:AA==]\nsops_version=3.13.3\n",
	} {
		if _, err := own.Reseal("features/other.yaml", []byte(other)); err == nil || diag.Hint(err) == "" {
			t.Errorf("it went along, encrypted for others: %v", err)
		}
	}
}

// The management cluster that comes with this fleet repo may be made after the repository of another one's own was opened: its init makes
// the identity and the key, and both count for what comes along later.
func TestResealedForKeysMadeLater(t *testing.T) {
	server, dir, deps, key := ownrepotest.New(t)
	sealed, err := os.ReadFile(filepath.Join(dir, "providers/eu/v1/clusters/prod/shop/password.sops.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fleetrepo.IdentityFile, "providers/eu/v1/clusters/prod/shop/password.sops.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	variable := deps.LookupEnv
	deps.LookupEnv = func(name string) (string, bool) {
		if name == "SOPS_AGE_KEY_FILE" {
			return "", false
		}
		return variable(name)
	}
	own, err := Open(t.Context(), deps, Options{Dir: dir, Cluster: "eu", Git: change.Credentials{Token: server.Token}})
	if err != nil {
		t.Fatal(err)
	}
	const name = "providers/eu/v1/clusters/regions/common/sync/git-auth.sops.yaml"
	if _, err := own.Reseal(name, sealed); err == nil || !strings.Contains(err.Error(), "no private key for it is known here") {
		t.Fatalf("without the key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(ownrepotest.MastersID), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fleetsecrets.KeepKeys(t.Context(), deps, state.Fleet{ID: ownrepotest.MastersID, Name: "masters"}, secret.Keys{key}); err != nil {
		t.Fatal(err)
	}
	first, err := own.Reseal(name, sealed)
	if err != nil {
		t.Fatal(err)
	}
	again, err := own.Reseal(name, sealed)
	if err != nil || string(again) != string(first) {
		t.Errorf("another answer for the same file: %v", err)
	}
	id, err := fleetrepo.ReadIdentity(own.Dir)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := own.Reseal("tags.yaml", []byte("fleet: "+ownrepotest.MastersID+"\n"))
	if err != nil || string(tags) != "fleet: "+id+"\n" {
		t.Errorf("%s: %v", tags, err)
	}
}
