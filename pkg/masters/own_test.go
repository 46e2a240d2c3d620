package masters

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// filesOf are the files of a folder, with their content.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		relative, _ := filepath.Rel(dir, name)
		files[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The own repository gets the new management cluster's files from the masters' repository, which no longer has them afterwards. Each
// repository is pushed with its own token, and neither token opens the other repository. Nothing is made if one of the pushes is refused.
func TestOpenOwn(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	above, own := gittest.NewHTTPS(t, gittest.Options{}), gittest.NewHTTPS(t, gittest.Options{})
	r := openMasters(t, mastersFleet)
	e, err := r.Transfer(transferOf("early"))
	r = apply(t, r, e, err) // eu has a cluster before it has a repository
	files := filesOf(t, r.Dir)
	files["ca.pem"], files["eu-ca.pem"] = string(above.CA), string(own.CA)
	files["fleet.yaml"] = strings.NewReplacer(
		`git: {url: "https://127.0.0.1:1/fleet.git"}`, `git: {url: "`+above.URL+`", username: `+above.Username+`, caFile: ca.pem}`,
		"    cloud: eu\n", "    cloud: eu\n    repository: {git: {url: '"+own.URL+"', username: "+own.Username+
			", caFile: eu-ca.pem}, environments: [prod]}\n",
	).Replace(mastersFleet)
	above.Seed(t, "main", files)
	dir := filepath.Join(t.TempDir(), "masters")
	if _, err := gitrepo.Clone(t.Context(), above.URL, gitrepo.Auth{Username: above.Username, Token: above.Token, CA: above.CA},
		"main", dir); err != nil {
		t.Fatal(err)
	}
	d := deps(t)
	newMaster := func(ownToken string) *master {
		return &master{
			Deps: d, result: &Result{Cluster: "eu", Parent: "root"},
			opts: Options{
				BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: dir, Git: change.Credentials{Token: above.Token}}},
				Master:           masterOf(t, open(t, dir)), Own: OwnOptions{Git: change.Credentials{Token: ownToken}},
			},
		}
	}
	before := above.Head(t, "main")
	if err := newMaster(above.Token).openOwn(t.Context()); err == nil || diag.Hint(err) == "" {
		t.Errorf("with the token of the masters: %v", err)
	}
	if above.Head(t, "main") != before || own.Head(t, "main") != "" {
		t.Error("something was pushed")
	}
	m := newMaster(own.Token)
	if err := m.openOwn(t.Context()); err != nil {
		t.Fatal(err)
	}
	own.Protect(t, "main")
	if err := m.takeOver(t.Context(), false); !errors.Is(err, gitrepo.ErrProtectedBranch) ||
		!strings.Contains(diag.Hint(err), "nothing has been made yet") {
		t.Errorf("the own repository takes no pushes: %v: %s", err, diag.Hint(err))
	}
	own.Hook(t, "pre-receive", "")
	if err := m.checkOwn(t.Context()); err != nil {
		t.Errorf("the own repository takes pushes: %v", err)
	}
	lost := fmt.Errorf("decrypt: %w", secret.ErrNoKey)
	if hint := m.beginAnew(lost); !strings.Contains(hint, own.URL+" anew as an empty repository") || !strings.Contains(hint, m.own.Dir) ||
		m.beginAnew(errors.New("another")) != "" {
		t.Errorf("without the age key of eu: %q", hint)
	}
	if err := m.moveOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hint := m.beginAnew(lost); hint != "" {
		t.Errorf("there is nothing left to begin with: %q", hint)
	}
	if _, err := os.Stat(filepath.Join(dir, "providers", "eu")); err == nil {
		t.Error("the masters' repository still has the folder of eu")
	}
	if above.Head(t, "main") == before || len(m.result.Changes) != 1 {
		t.Errorf("it was not pushed: %+v", m.result.Changes)
	}
	own.File(t, "main", "providers/eu/v1/clusters/prod/early/cluster.yaml")
	if m.dirOf("eu") != m.own.Dir || m.dirOf("root") != dir || m.result.Repo != m.own.Dir {
		t.Errorf("eu is declared in %s, root in %s", m.dirOf("eu"), m.dirOf("root"))
	}
	if got := m.opts.Master; got.Alone || len(got.Has) != 1 || got.Has[0].Name != "early" || len(got.Clusters) != 1 ||
		got.Clusters[0].Name != "eu" {
		t.Errorf("%+v", got)
	}
	_, o, err := m.ofCluster()
	if err != nil || o.Dir != m.own.Dir || o.Git.Token != own.Token || o.FluxToken != "" {
		t.Errorf("init of eu: %+v, %v", o, err)
	}
	others := filepath.Join(m.own.Dir, "fleet.yaml")
	declared, err := os.ReadFile(others)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		strings.Replace(string(declared), "name: docker\n", "name: docker\n          variables: [{name: X, env: SOPS_AGE_KEY}]\n", 1): "environment variable SOPS_AGE_KEY",
		string(declared): "",
	} {
		if err := os.WriteFile(others, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, o, err := m.ofCluster()
		if o.Sources == nil || want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("init of eu, where its own repo wants %q: %v", want, err)
		}
	}
	if err := os.WriteFile(others, declared, 0o600); err != nil {
		t.Fatal(err)
	}
	heads := [2]string{above.Head(t, "main"), own.Head(t, "main")}
	again := newMaster(own.Token)
	if err := errors.Join(again.openOwn(t.Context()), again.moveOut(t.Context())); err != nil || len(again.result.Changes) > 0 ||
		heads != [2]string{above.Head(t, "main"), own.Head(t, "main")} {
		t.Errorf("again: %+v, %v", again.result.Changes, err)
	}
	proposing := newMaster(own.Token)
	proposing.opts.Change.PullRequest = true
	if err := proposing.openOwn(t.Context()); err == nil || diag.Code(err) != diag.ExitUsage {
		t.Errorf("by a pull request: %v", err)
	}
}
