package reclaim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/state"
)

const fleetID = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"

const orphansFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {GIT}
  environments: [{name: prod}]
  managementClusters:
  - {name: mgmt, host: {type: embedded}, providers: [{name: aws}]}
`

// A commit that a colleague has pushed, and that this machine has not fetched, changes the list of possible owners of a cluster.
func TestOrphansAreOfTheNewestFleetRepo(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	server, dir := gittest.NewHTTPS(t, gittest.Options{}), filepath.Join(t.TempDir(), "fleet")
	fleet := strings.Replace(orphansFleet, "{GIT}", `{url: "`+server.URL+`", username: `+server.Username+`, caFile: ca.pem}`, 1)
	server.Seed(t, "main", map[string]string{"fleet.yaml": fleet, "ca.pem": string(server.CA)})
	auth := gitrepo.Auth{Username: server.Username, Token: server.Token, CA: server.CA}
	if _, err := gitrepo.Clone(t.Context(), server.URL, auth, "main", dir); err != nil {
		t.Fatal(err)
	}
	check := func(want, hint string) {
		t.Helper()
		repo, err := fleetrepo.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		err = checkNewest(t.Context(), repo, change.Credentials{Token: server.Token})
		if want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(diag.Hint(err), hint)) {
			t.Errorf("%v, hint %q; want %q, %q", err, diag.Hint(err), want, hint)
		}
	}
	check("", "")
	file := filepath.Join(dir, "fleet.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fleet + "# mine\n")
	check("uncommitted changes: fleet.yaml", "commit")
	gittest.Git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--all", "--message", "Mine")
	check("is not what the branch main", "git pull")
	gittest.Git(t, dir, "reset", "--quiet", "--hard", "HEAD~1")
	check("", "")
	server.Seed(t, "main", map[string]string{"fleet.yaml": fleet + "# a colleague's\n"})
	check("is not what the branch main", "git pull")
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	check("has no remote", "clone")
	write(strings.Replace(orphansFleet, "{GIT}", "{}", 1))
	check("", "") // it is served from this folder
}

// A management cluster of the fleet that fleet.yaml does not name, and this machine remembers, may own clusters all the same.
func TestFleetTargets(t *testing.T) {
	dir, store := t.TempDir(), state.Store{Dir: t.TempDir()}
	for name, content := range map[string]string{
		"fleet.yaml": strings.Replace(orphansFleet, "{GIT}", "{}", 1), fleetrepo.IdentityFile: string(fleetrepo.IdentityContent(fleetID)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, id := range map[string]string{"mgmt": fleetID, "mgmt2": fleetID, "theirs": "11111111-2222-4333-8444-555555555555"} {
		if err := store.Cluster(name).Save(state.Record{Name: name, Fleet: "acme", FleetID: id, HostType: "embedded"}); err != nil {
			t.Fatal(err)
		}
	}
	mgmt, err := management.Find(store, "mgmt", dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := FleetTargets(store, dir, []*management.Target{mgmt})
	if err != nil || len(all) != 2 || all[1].Name != "mgmt2" {
		t.Errorf("%+v, %v", all, err)
	}
}
