package standing_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// An old clone knows nothing of the management cluster that another machine has made since, and its remote does.
func TestAnotherThatOnlyTheRemoteTellsOf(t *testing.T) {
	const fleet, mine, theirs = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", "a-1", "b-2"
	for name, c := range map[string]struct {
		clone, remote string // the management cluster that each names; "" for none
		ended         bool   // this machine has made one, and ended it
		stranger      bool   // the clone came from a server that fleet.yaml does not name, and a token would go there
		says          string
	}{
		"nobody has made one":                        {},
		"another machine has made it since":          {remote: theirs, says: "this machine has no host and no record of it"},
		"this machine has ended it":                  {clone: mine, remote: mine, ended: true},
		"another has made it again since":            {clone: mine, remote: theirs, ended: true, says: "this machine knows only another one"},
		"another has, and a server may not be asked": {clone: mine, remote: theirs, ended: true, stranger: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := gittest.NewHTTPS(t, gittest.Options{})
			url := server.URL
			if c.stranger {
				url = "https://elsewhere.example.com/fleet.git"
			}
			files := func(uid string) map[string]string {
				files := map[string]string{
					"ca.pem": string(server.CA), "fleet.id": string(fleetrepo.IdentityContent(fleet)),
					"fleet.yaml": "{apiVersion: fleetctl.dev/v1alpha1, kind: Fleet, metadata: {name: acme}, spec: {git: {url: '" + url + "', username: " +
						server.Username + ", caFile: ca.pem}, managementClusters: [{name: mgmt, host: {type: embedded}, providers: [{name: docker, " +
						"version: v1.14.2}]}]}}\n",
				}
				if uid != "" {
					files["providers/docker/v1/mgmt/flux-system/gotk-sync.yaml"] = "{}\n"
					files["providers/docker/v1/management.id"] = "{uid: " + uid + ", at: 2026-11-26T10:00:00Z, by: ci}\n"
				}
				return files
			}
			server.Seed(t, "main", files(c.clone))
			dir := filepath.Join(t.TempDir(), "fleet")
			auth := gitrepo.Auth{Username: server.Username, Token: server.Token, CA: server.CA}
			if _, err := gitrepo.Clone(t.Context(), server.URL, auth, "main", dir); err != nil {
				t.Fatal(err)
			}
			if c.remote != c.clone {
				server.Seed(t, "main", files(c.remote))
			}
			deps := management.Deps{
				Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
				LookupEnv: func(string) (string, bool) { return "", false },
			}
			s, err := session.Open(t.Context(), deps, session.Options{
				Dir: dir, Git: change.Credentials{Token: server.Token}, NoCommands: c.stranger,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if c.ended {
				if err := s.Cluster.NoteMade(fleet, mine); err != nil {
					t.Fatal(err)
				}
				if err := s.Cluster.NoteEnded(fleet); err != nil {
					t.Fatal(err)
				}
			}
			asked := server.Fetches()
			switch err := standing.RefusePublished(t.Context(), s); {
			case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v", err)
			}
			// A run goes on to look at the cluster that is there.
			if err := standing.RefuseSecond(t.Context(), s, serverOf(t, theirs, nil)); err != nil {
				t.Errorf("a cluster that is there: %v", err)
			}
			want := int64(1)
			if c.stranger {
				want = 0
			}
			if asked = server.Fetches() - asked; asked != want {
				t.Errorf("the remote was asked %d times, want %d", asked, want)
			}
		})
	}
}
