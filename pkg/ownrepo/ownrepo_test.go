package ownrepo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownrepo/ownrepotest"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
)

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
	server, dir, deps, mastersKey := ownrepotest.New(t)
	o := Options{Dir: dir, Cluster: "eu", Git: change.Credentials{Token: server.Token}}
	if _, err := Open(t.Context(), deps, Options{Dir: dir, Cluster: "eu", At: t.TempDir()}); err == nil ||
		!strings.Contains(diag.Hint(err), "--own-git-token-file") && !strings.Contains(err.Error(), "401") {
		t.Errorf("without a token: %v (%s)", err, diag.Hint(err))
	}
	asked := o
	asked.Create = true // and nothing tells which forge has it
	if _, err := Open(t.Context(), deps, asked); !errors.Is(err, forge.ErrUnknownForge) {
		t.Errorf("asked to make it: %v", err)
	}
	own, err := Open(t.Context(), deps, o)
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
	if id == ownrepotest.MastersID {
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
		again, err := Open(t.Context(), deps, o)
		if err != nil || again.Made || again.Commit != head || server.Head(t, "main") != head {
			t.Errorf("again, at %q: %+v, %v", at, again, err)
		}
	}
}
