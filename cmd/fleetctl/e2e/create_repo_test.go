//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestRepositoryIsMade begins a fleet in a repository that does not exist yet: init makes it on a real forge where it is asked to, once.
func TestRepositoryIsMade(t *testing.T) {
	g := startGitea(t)
	g.user(t, "ada")
	f := newFleetOn(t, onEmbedded, "e2e-create")
	f.token = g.token(t, "ada", "write:user", "write:repository", "write:organization")
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "ca.pem"), g.ca, 0o644); err != nil {
		t.Fatal(err)
	}
	first := []string{
		"init", "--provider", "docker", "--host", "embedded", "--bundle", os.Getenv(envBundle), "--git-url", g.url + "/ada/fleet.git",
		"--git-ca-file", "ca.pem",
	}
	f.fails(1, []string{"not found", "fleetctl init --create-repo"}, first...)
	f.ok(append(first, "--create-repo", "--forge", "gitea")...)
	if about := decode[struct{ Private bool }](t, g.does(t, http.MethodGet, "/repos/ada/fleet", nil)); !about.Private {
		t.Error("everybody can read it")
	}
	f.ok("init", "--create-repo", "--bundle", os.Getenv(envBundle))
	if st, code := f.status(); code != 0 {
		t.Errorf("status: exit %d, %+v", code, st.Problems)
	}
	f.ok("teardown", "--yes")
}
