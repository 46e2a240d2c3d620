package masters

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/change"
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

// A parent that has been torn down is noted in the fleet repo, where another machine finds the note. Where it cannot be noted, or is not
// gone, nothing claims that it has ended, and the run says what follows.
func TestNoteEnded(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	server := gittest.NewHTTPS(t, gittest.Options{})
	files := filesOf(t, openMasters(t, mastersFleet).Dir)
	files["ca.pem"] = string(server.CA)
	files["fleet.yaml"] = strings.Replace(mastersFleet, `git: {url: "https://127.0.0.1:1/fleet.git"}`,
		`git: {url: "`+server.URL+`", username: `+server.Username+`, caFile: ca.pem}`, 1)
	server.Seed(t, "main", files)
	for _, c := range []struct {
		name, token          string
		gone, request, noted bool
		warns                bool
	}{
		{name: "it is kept", token: server.Token},
		{name: "with a pull request", token: server.Token, gone: true, request: true, warns: true},
		{name: "without the right to push", token: "wr0ng", gone: true, warns: true},
		{name: "it is gone", token: server.Token, gone: true, noted: true},
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
				Deps: d, result: &Result{Cluster: "eu", Parent: "root", ParentGone: c.gone},
				opts: Options{
					BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: dir, Git: change.Credentials{Token: c.token}}},
					Change:           change.Options{PullRequest: c.request},
				},
			}
			before := server.Head(t, "main")
			m.noteEnded(t.Context())
			if pushed := server.Head(t, "main") != before; pushed != c.noted || (len(m.result.Changes) == 1) != c.noted {
				t.Errorf("pushed: %t, %+v", pushed, m.result.Changes)
			}
			if c.noted {
				if note := server.File(t, "main", "providers/root/v1/handed-over/root.yaml"); !strings.Contains(note, "ended:") {
					t.Errorf("the note: %s", note)
				}
			}
			if said := strings.Join(h.warnings, "\n"); c.warns != strings.Contains(said, "--source-is-gone") {
				t.Errorf("warnings: %q", said)
			}
		})
	}
}
