package masters

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge/forgetest"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// heard keeps the warnings.
type heard struct {
	progress.Reporter

	warnings []string
}

func (h *heard) Warn(text string) { h.warnings = append(h.warnings, text) }

// A parent that has been torn down is noted in the fleet repo, where another machine finds the note, or in a pull request, which the
// result names. Where it cannot be noted, the run says what follows.
func TestNoteEnded(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	server := gittest.NewHTTPS(t, gittest.Options{API: func(token string) http.Handler { return forgetest.New(token) }})
	files := filesOf(t, openMasters(t, mastersFleet).Dir)
	files["ca.pem"] = string(server.CA)
	files["fleet.yaml"] = strings.Replace(mastersFleet, `git: {url: "https://127.0.0.1:1/fleet.git"}`,
		`git: {url: "`+server.URL+`", username: `+server.Username+`, forge: gitea, caFile: ca.pem}`, 1)
	files["fleet.id"] = string(fleetrepo.IdentityContent(fleetID))
	server.Seed(t, "main", files)
	for _, c := range []struct {
		name, token          string
		request, noted, next bool
		warns                bool
	}{
		{name: "with a pull request", token: server.Token, request: true, next: true},
		{name: "with a pull request, without the right to push", token: "wr0ng", request: true, warns: true},
		{name: "without the right to push", token: "wr0ng", warns: true},
		{name: "it is gone", token: server.Token, noted: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "masters")
			if _, err := gitrepo.Clone(t.Context(), server.URL, gitrepo.Auth{Username: server.Username, Token: server.Token, CA: server.CA},
				"main", dir); err != nil {
				t.Fatal(err)
			}
			h, d := &heard{Reporter: progress.Discard}, deps(t)
			d.Report = h
			m := &master{
				Deps: d, result: &Result{Cluster: "eu", Parent: "root", ParentGone: true},
				opts: Options{
					BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: dir, Git: change.Credentials{Token: c.token}}},
					Change:           change.Options{PullRequest: c.request},
				},
			}
			before := server.Head(t, "main")
			m.noteEnded(t.Context(), rootUID)
			if pushed := server.Head(t, "main") != before; pushed != c.noted || (len(m.result.Changes) == 1) != (c.noted || c.next) {
				t.Errorf("pushed: %t, %+v", pushed, m.result.Changes)
			}
			if c.noted {
				note := server.File(t, "main", "providers/root/v1/handed-over/root.yaml")
				if !strings.Contains(note, "ended:") || !strings.Contains(note, "uid: "+rootUID) {
					t.Errorf("the note: %s", note)
				}
			}
			if next := strings.Join(m.result.Next, "\n"); c.next != (strings.Contains(next, "merge https://") &&
				strings.Contains(next, "--source-is-gone")) {
				t.Errorf("next: %q", next)
			}
			if said := strings.Join(h.warnings, "\n"); c.warns != strings.Contains(said, "--source-is-gone") {
				t.Errorf("warnings: %q", said)
			}
		})
	}
}

// A run that tore the parent down, and was interrupted before it noted so, is made up for by the next run on this machine: once, and only
// for the cluster that this machine has made.
func TestNoteEndedBefore(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	for name, c := range map[string]struct {
		made, ended string // by this machine; the cluster that the note in the fleet repo names
		here, noted bool   // this machine has ended a parent; the note comes
	}{
		"another machine's":                {},
		"this machine's, which lives":      {made: rootUID},
		"this machine's, which has ended":  {made: rootUID, here: true, noted: true},
		"another one of this machine":      {made: "0" + rootUID[1:], here: true},
		"noted before":                     {made: rootUID, here: true, ended: rootUID},
		"an earlier one that was noted so": {made: rootUID, here: true, ended: "0" + rootUID[1:], noted: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := gittest.NewHTTPS(t, gittest.Options{})
			files := filesOf(t, openMasters(t, mastersFleet).Dir)
			files["ca.pem"], files["fleet.id"] = string(server.CA), string(fleetrepo.IdentityContent(fleetID))
			files["fleet.yaml"] = strings.Replace(mastersFleet, `git: {url: "https://127.0.0.1:1/fleet.git"}`,
				`git: {url: "`+server.URL+`", username: `+server.Username+`, caFile: ca.pem}`, 1)
			files["providers/root/v1/management.id"] = "uid: " + rootUID + "\n"
			if c.ended != "" {
				files["providers/root/v1/handed-over/root.yaml"] = "ended: {uid: " + c.ended + "}\n"
			}
			server.Seed(t, "main", files)
			dir := filepath.Join(t.TempDir(), "masters")
			if _, err := gitrepo.Clone(t.Context(), server.URL, gitrepo.Auth{Username: server.Username, Token: server.Token, CA: server.CA},
				"main", dir); err != nil {
				t.Fatal(err)
			}
			m := &master{
				Deps: deps(t), result: &Result{Cluster: "eu", Parent: "root"},
				opts: Options{
					BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: dir, Git: change.Credentials{Token: server.Token}}},
				},
			}
			if err := m.parentHere().NoteMade(fleetID, c.made); err != nil {
				t.Fatal(err)
			}
			if c.here {
				if err := m.parentHere().NoteEnded(fleetID); err != nil {
					t.Fatal(err)
				}
			}
			for _, noted := range []bool{c.noted, false} {
				before := server.Head(t, "main")
				if err := m.endParent(t.Context()); err != nil {
					t.Fatal(err)
				}
				if pushed := server.Head(t, "main") != before; pushed != noted {
					t.Errorf("noted: %t", pushed)
				}
			}
		})
	}
}

// fleetID is the identity of the masters' fleet, and rootUID a parent, by the UID of its namespace kube-system.
const (
	fleetID = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"
	rootUID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
)
