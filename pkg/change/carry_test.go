package change

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

const carriedFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "URL", username: git, caFile: ca.pem}
  managementClusters:
  - {name: first, host: {type: embedded}, providers: [{name: docker, version: v1.14.2}]}
`

// A remote is asked whether it takes a push without a push, and a dry run leaves the clone as it is.
func TestCheckCarry(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"fleet.yaml": strings.Replace(carriedFleet, "URL", server.URL, 1), "ca.pem": string(server.CA)})
	dir := filepath.Join(t.TempDir(), "fleet")
	if _, err := gitrepo.Clone(t.Context(), server.URL, gitrepo.Auth{Username: server.Username, Token: server.Token, CA: server.CA},
		"main", dir); err != nil {
		t.Fatal(err)
	}
	check := func(token string, dryRun, push bool) error {
		return CheckCarry(t.Context(), Options{Dir: dir, Git: Credentials{Token: token}, DryRun: dryRun, Push: push})
	}
	refs := func() string { return gittest.Git(t, server.Dir, "for-each-ref") }
	before := refs()
	if err := errors.Join(check(server.Token, true, true), check(server.Token, false, true), check("wr0ng", false, false)); err != nil {
		t.Errorf("a remote that takes pushes: %v", err)
	}
	if err := check(server.ReadToken, true, true); !errors.Is(err, gitrepo.ErrNoPushRight) || diag.Hint(err) == "" {
		t.Errorf("a token that reads: %v", err)
	}
	server.Protect(t, "main")
	if err := check(server.Token, true, true); !errors.Is(err, gitrepo.ErrProtectedBranch) ||
		!strings.HasPrefix(diag.Hint(ByPullRequest(err)), "use --pr in place of --push") {
		t.Errorf("a protected branch: %v", err)
	}
	server.Hook(t, "pre-receive", "")
	if refs() != before {
		t.Errorf("the remote has changed:\n%s", refs())
	}
	head := func() string { return gittest.Git(t, dir, "rev-parse", "HEAD") }
	was, moved := head(), server.Seed(t, "main", map[string]string{"theirs": "1"})
	if err := check(server.Token, true, true); err != nil || head() != was {
		t.Errorf("a dry run of a clone that is behind: %v, at %s", err, head())
	}
	if err := check(server.Token, false, true); err != nil || strings.TrimSpace(head()) != moved {
		t.Errorf("a clone that is behind: %v, at %s", err, head())
	}
	gittest.Git(t, dir, "commit", "--quiet", "--allow-empty", "--message", "Mine")
	if err := check(server.Token, true, true); !errors.Is(err, gitrepo.ErrUnpushed) || !strings.Contains(err.Error(), "Mine") {
		t.Errorf("a commit that is not pushed: %v", err)
	}
	server.Seed(t, "main", map[string]string{"theirs": "2"})
	for _, dryRun := range []bool{true, false} {
		if err := check(server.Token, dryRun, true); !errors.Is(err, gitrepo.ErrDiverged) {
			t.Errorf("diverged, dry run is %t: %v", dryRun, err)
		}
	}
	gittest.Git(t, dir, "remote", "set-url", "origin", "https://127.0.0.1:1/fleet.git")
	if err := check(server.Token, true, true); !errors.Is(err, gitrepo.ErrNetwork) {
		t.Errorf("nobody answers: %v", err)
	}
}
