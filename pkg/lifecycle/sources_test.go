package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/ownrepo"
	"github.com/fleetctl/fleetctl/pkg/ownrepo/ownrepotest"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Init looks itself: what it reads may have been pushed a moment ago.
func TestInitTakesOnlyDeclaredSources(t *testing.T) {
	server, dir, deps, _ := ownrepotest.New(t)
	own, err := ownrepo.Open(t.Context(), deps, ownrepo.Options{Dir: dir, Cluster: "eu", Git: change.Credentials{Token: server.Token}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(own.Dir, v1alpha1.FileName)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(t.TempDir(), "canary")
	changed := strings.Replace(string(content), "name: docker\n",
		"name: docker\n          variables: [{name: X, command: [touch, "+canary+"]}]\n", 1)
	if changed == string(content) {
		t.Fatalf("no provider in\n%s", content)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	declared := &v1alpha1.ManagementCluster{Name: "eu", Parent: "root", Providers: []v1alpha1.Provider{{Name: "docker"}}}
	_, err = Init(t.Context(), session.Narrowed(deps, declared),
		session.Options{Dir: own.Dir, Cluster: "eu", Sources: &session.Sources{Dir: dir, Declared: declared}})
	if err == nil || !strings.Contains(err.Error(), "variable X of provider docker comes from command touch") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("the command was run")
	}
}

// A command sees what its run may see of the environment, and runs in the fleet repo that declares it.
func TestNarrowedCommand(t *testing.T) {
	_, dir, deps, _ := ownrepotest.New(t)
	t.Setenv("SOPS_AGE_KEY", "the key of the parent")
	look := v1alpha1.Variable{Name: "D_TOKEN", Command: []string{"/bin/sh", "-c", "echo $" + "SOPS_AGE_KEY" + "$EU_TOKEN; pwd"}}
	declared := &v1alpha1.ManagementCluster{
		Name:      "eu",
		Providers: []v1alpha1.Provider{{Name: "docker", Variables: []v1alpha1.Variable{look, {Name: "EU_TOKEN"}}}},
	}
	s := &session.Session{
		Deps: session.Narrowed(deps, declared),
		Opts: session.Options{Dir: t.TempDir(), Sources: &session.Sources{Dir: dir, Declared: declared}}, Mgmt: declared,
	}
	resolved, err := s.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := resolved.Values["D_TOKEN"]; got != "eu's\n"+dir {
		t.Errorf("it saw %q", got)
	}
}
