package ownrepo

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/forge/forgetest"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
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

// A repository that does not exist is made at the forge, private, if the user asks for that. It then gets its first commit, and a later run
// takes what is there.
func TestOpenMakesTheRepository(t *testing.T) {
	declared, dir, deps, _ := ownrepotest.New(t)
	var server *gittest.HTTPS
	var api *forgetest.Forge
	server = gittest.NewHTTPS(t, gittest.Options{API: func(token string) http.Handler {
		api = forgetest.New(token)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before, answer := len(api.Repositories()), httptest.NewRecorder()
			api.ServeHTTP(answer, r)
			for _, made := range api.Repositories()[before:] { // what is made can be pushed to, as soon as the forge says so
				at := filepath.Join(filepath.Dir(server.Dir), filepath.Base(made.Path)+".git")
				gittest.Git(t, filepath.Dir(at), "init", "--quiet", "--bare", "--initial-branch", "main", at)
				gittest.Git(t, at, "config", "http.receivepack", "true")
			}
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	}})
	absent := strings.Replace(server.URL, "/fleet.git", "/eu.git", 1)
	file := filepath.Join(dir, v1alpha1.FileName)
	fleet, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fleet = []byte(strings.Replace(string(fleet), `git: {url: "`+declared.URL+`"`, `git: {forge: gitea, url: "`+absent+`"`, 1))
	for name, content := range map[string][]byte{file: fleet, filepath.Join(dir, "eu-ca.pem"): server.CA} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Dir: dir, Cluster: "eu", Git: change.Credentials{Token: server.Token}}
	if _, err := Open(t.Context(), deps, o); err == nil || !strings.Contains(diag.Hint(err), "--own-create-repo") ||
		len(api.Repositories()) != 1 {
		t.Errorf("not asked to make it: %v (%s), %v", err, diag.Hint(err), api.Repositories())
	}
	o.Create = true
	own, err := Open(t.Context(), deps, o)
	if err != nil {
		t.Fatal(err)
	}
	if all := api.Repositories(); len(all) != 2 || all[1] != (forgetest.Repository{Path: forgetest.Organization + "/eu", Private: true}) {
		t.Errorf("the forge has %v", all)
	}
	there := gittest.Repo{Dir: filepath.Join(filepath.Dir(server.Dir), "eu.git")}
	first := there.File(t, "main", v1alpha1.FileName)
	if head := there.Head(t, "main"); !own.Made || own.Commit != head || !strings.Contains(first, "acme-eu") {
		t.Errorf("%+v, and the repository has %s", own, head)
	}
	again, err := Open(t.Context(), deps, o)
	if err != nil || again.Made || again.Commit != own.Commit || len(api.Repositories()) != 2 {
		t.Errorf("again: %+v, %v, %v", again, err, api.Repositories())
	}
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
