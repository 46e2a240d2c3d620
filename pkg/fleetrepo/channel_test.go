package fleetrepo

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const syncFile = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 1m0s
  ref:
    branch: main
  url: https://git.example.org/fleet.git
`

// releaseChannel is a channel of tags.
var releaseChannel = v1alpha1.Channel{Name: "release", Tag: "v*"}

// taggedAsNow is Repo.Tagged for tags that have the repo's present files.
func taggedAsNow(r *Repo) func(string) (fs.FS, error) {
	return func(string) (fs.FS, error) { return os.DirFS(r.Dir), nil }
}

// withRelease returns the repo with two management clusters that init has made, and with prod on the channel release.
func withRelease(t testing.TB) *Repo {
	t.Helper()
	r := open(t)
	for i := range r.Fleet.Spec.ManagementClusters {
		write(t, r.Dir, r.Fleet.Spec.ManagementClusters[i].Layout().SyncFile(), []byte(syncFile))
	}
	e, err := r.AddChannel(releaseChannel, []string{"prod"})
	_, r = done(t, r, e, err)
	return r
}

// The first promotion makes the channel's sources. Each later promotion changes one line for each management cluster.
func TestPromote(t *testing.T) {
	r := withRelease(t)
	e, err := r.Promote("", "v0.1.0", "", os.DirFS(r.Dir))
	diff, r := done(t, r, e, err)
	for i := range r.Fleet.Spec.ManagementClusters {
		at := r.Fleet.Spec.ManagementClusters[i].Layout()
		for _, file := range []string{at.SourceFile("release"), at.ClustersFile("prod")} {
			if !strings.Contains(diff, "+++ b/"+file+"\n") {
				t.Errorf("%s is not made:\n%s", file, diff)
			}
		}
	}
	e, err = r.Promote("release", "v0.2.0", "", os.DirFS(r.Dir))
	diff, r = done(t, r, e, err)
	want := strings.Repeat("-    tag: v0.1.0\n+    tag: v0.2.0\n", len(r.Fleet.Spec.ManagementClusters))
	if d := cmp.Diff(want, lines(diff)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	e, err = r.Promote("release", "v0.2.0", "", os.DirFS(r.Dir))
	if diff, _ := done(t, r, e, err); diff != "" {
		t.Errorf("a second time:\n%s", diff)
	}
	one := r.Fleet.Spec.ManagementClusters[0].Name
	e, err = r.Promote("release", "v0.1.0", one, os.DirFS(r.Dir))
	diff, r = done(t, r, e, err)
	if got := lines(diff); got != "-    tag: v0.2.0\n+    tag: v0.1.0\n" {
		t.Errorf("one management cluster: %s", got)
	}
	at, err := r.Positions("release")
	if err != nil || len(at) != len(r.Fleet.Spec.ManagementClusters) || at[0] != (Position{one, "v0.1.0"}) {
		t.Errorf("%v, %v", at, err)
	}
}

// The Kustomization of an environment is made with the first tag that has the environment's folder, because Flux would report a missing
// folder as an error.
func TestFolderThatTheTagLacks(t *testing.T) {
	r := withRelease(t)
	e, err := r.Promote("release", "v0.1.0", "", os.DirFS(r.Dir))
	_, r = done(t, r, e, err)
	before := t.TempDir()
	if err := os.CopyFS(before, os.DirFS(r.Dir)); err != nil {
		t.Fatal(err)
	}
	applied := func() (n int) {
		for _, m := range r.Fleet.Spec.ManagementClusters {
			if r.exists(m.Layout().ClustersFile("prod-eu")) {
				n++
			}
		}
		return n
	}
	e, err = r.AddEnvironment("prod-eu", EnvironmentOptions{Channel: "release"})
	_, r = done(t, r, e, err)
	if !strings.Contains(strings.Join(e.Notes, "\n"), "clusters/prod-eu: Flux applies that folder from the next `fleetctl promote` on") {
		t.Errorf("the edit says %q", e.Notes)
	}
	if n := applied(); n > 0 {
		t.Errorf("%d management clusters apply a folder that the tag lacks", n)
	}
	e, err = r.Promote("release", "v0.1.0", "", os.DirFS(before))
	_, r = done(t, r, e, err)
	if n := applied(); n > 0 {
		t.Errorf("after a promotion to the tag that lacks it, %d management clusters apply the folder", n)
	}
	e, err = r.Promote("release", "v0.2.0", "", os.DirFS(r.Dir))
	_, r = done(t, r, e, err)
	if n := applied(); n != len(r.Fleet.Spec.ManagementClusters) {
		t.Errorf("after the promotion that brings it, %d management clusters apply the folder", n)
	}
}

// A running environment whose folder the tag of its new channel lacks stays with its old channel until the next promotion. So do its
// clusters.
func TestRunningEnvironmentWaitsForItsTag(t *testing.T) {
	for name, move := range map[string]func(r *Repo) (*Edit, error){
		"environment set": func(r *Repo) (*Edit, error) {
			return r.SetEnvironment("staging", EnvironmentOptions{Channel: "release"})
		},
		"channel add": func(r *Repo) (*Edit, error) { return r.AddChannel(releaseChannel, []string{"staging"}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := withFlux(t)
			e, err := r.AddChannel(releaseChannel, []string{"prod"})
			_, r = done(t, r, e, err)
			e, err = r.Promote("release", "v0.1.0", "", os.DirFS(r.Dir))
			_, r = done(t, r, e, err)
			tag := t.TempDir()
			if err := os.CopyFS(tag, os.DirFS(r.Dir)); err != nil {
				t.Fatal(err)
			}
			e, err = r.AddEnvironment("staging", EnvironmentOptions{})
			_, r = done(t, r, e, err)
			r = withCluster(t, r, AddOptions{Name: "s1", Environment: "staging", Flavour: "docker", CNI: "cilium"})
			follows := func() string {
				c := must(r.find("s1"))
				return r.appliedFrom(c.mgmt, c.at, "staging") + " " + path.Base(fluxOf(t, r, "s1").SourceDir)
			}

			r.Tagged = func(string) (fs.FS, error) { return nil, errors.New("no such tag") }
			if _, err := move(r); err == nil || diag.Hint(err) != "git fetch --tags" {
				t.Errorf("without the tag: got %v (%s)", err, diag.Hint(err))
			}
			r.Tagged = taggedAsNow(r)
			e, err = move(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff, err := difference(e, r.Dir); err != nil || !strings.Contains(diff, "+    name: release\n") || len(e.Notes) > 0 {
				t.Errorf("the tag has the folder: %v, %q\n%s", err, e.Notes, diff)
			}
			r.Tagged = func(string) (fs.FS, error) { return os.DirFS(tag), nil }
			e, err = move(r)
			diff, changed := done(t, r, e, err)
			r = changed
			if got := lines(diff); got != "+    channel: release\n" || follows() != "flux-system ." {
				t.Errorf("the tag lacks the folder: cluster and environment follow %s\n%s", follows(), got)
			}
			const note = "clusters/staging: Flux applies that folder from the next `fleetctl promote` on. Until then, environment staging stays " +
				"with channel main."
			if notes := strings.Join(e.Notes, "\n"); !strings.Contains(notes, note) {
				t.Errorf("the edit says %q", e.Notes)
			}
			r = withCluster(t, r, AddOptions{Name: "s2", Environment: "staging", Flavour: "docker", CNI: "cilium"})
			if dir := fluxOf(t, r, "s2").SourceDir; dir != "" {
				t.Errorf("a new cluster follows %s meanwhile", dir)
			}
			e, err = r.Promote("release", "v0.1.0", "", os.DirFS(tag))
			if _, r = done(t, r, e, err); follows() != "flux-system ." {
				t.Errorf("after a promotion to the tag that lacks it: %s", follows())
			}
			e, err = r.Promote("release", "v0.2.0", "", os.DirFS(r.Dir))
			if _, r = done(t, r, e, err); follows() != "release"+" release" {
				t.Errorf("after the promotion that brings it: %s", follows())
			}
		})
	}
}

func TestPromoteRefusals(t *testing.T) {
	r := withRelease(t)
	for name, tc := range map[string]struct{ channel, cluster, err, hint string }{
		"unknown channel": {"relaese", "", `there is no channel "relaese"`, "did you mean release?"},
		"a branch":        {"main", "", "channel main follows the branch main", "push to the branch"},
		"unknown cluster": {"release", "nobody", "no such management cluster", ""},
	} {
		_, err := r.Promote(tc.channel, "v0.1.0", tc.cluster, os.DirFS(r.Dir))
		if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(diag.Hint(err), tc.hint) {
			t.Errorf("%s: got %v (%s)", name, err, diag.Hint(err))
		}
	}
	if _, err := open(t).Promote("", "v0.1.0", "", nil); err == nil || !strings.Contains(diag.Hint(err), "fleetctl channel add release") {
		t.Errorf("no channel of tags: got %v (%s)", err, diag.Hint(err))
	}
}

// A change and its opposite restore the file, also if a person has edited it.
func TestSetEnvironmentToAndFro(t *testing.T) {
	r := withRelease(t)
	e, err := r.Promote("release", "v0.1.0", "", os.DirFS(r.Dir))
	_, r = done(t, r, e, err)
	at := r.Fleet.Spec.ManagementClusters[0].Layout()
	file := filepath.Join(r.Dir, at.ClustersFile("dev"))
	e, err = r.AddEnvironment("dev", EnvironmentOptions{})
	_, r = done(t, r, e, err)
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const ours = "  # ours\n  patches:\n  - patch: |\n      - op: remove\n        path: /spec/suspend\n    target: {kind: HelmRelease}\n"
	for name, before := range map[string]string{
		"made": string(made), "changed": strings.Replace(string(made), "10m", "5m # faster", 1), "patched": string(made) + ours,
	} {
		write(t, r.Dir, at.ClustersFile("dev"), []byte(before))
		fleet, err := os.ReadFile(filepath.Join(r.Dir, v1alpha1.FileName))
		if err != nil {
			t.Fatal(err)
		}
		r.Tagged = taggedAsNow(r)
		e, err := r.SetEnvironment("dev", EnvironmentOptions{Channel: "release"})
		diff, r := done(t, r, e, err)
		if !strings.Contains(diff, "+    name: release\n") || strings.Count(diff, " value: release\n") != 2*len(r.Fleet.Spec.ManagementClusters) {
			t.Errorf("%s: %s", name, diff)
		}
		e, err = r.SetEnvironment("dev", EnvironmentOptions{Channel: "main"})
		_, r = done(t, r, e, err)
		after, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, string(after)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if now, err := os.ReadFile(filepath.Join(r.Dir, v1alpha1.FileName)); err != nil || string(now) != string(fleet) {
			t.Errorf("%s: fleet.yaml is %s (%v)", name, now, err)
		}
	}
}

// The channel main is in no list of fleet.yaml: its branch is elsewhere.
func TestMainIsNoNewChannel(t *testing.T) {
	_, err := open(t).AddChannel(v1alpha1.Channel{Name: "main", Tag: "v*"}, nil)
	if err == nil || !strings.Contains(err.Error(), "is the fleet repo's branch") || !strings.Contains(diag.Hint(err), "spec.git.branch") {
		t.Errorf("got %v (%s)", err, diag.Hint(err))
	}
}

// A notification about an environment names the source that the environment is applied from, whichever command lets it follow another one.
// What somebody has changed in it stays, and the edit says what it lacks.
func TestNotificationFollowsChannel(t *testing.T) {
	r := cloudsRepo(t, cloudsFleet)
	at := r.Fleet.Spec.ManagementClusters[0].Layout()
	write(t, r.Dir, at.SyncFile(), []byte(syncFile))
	const file = "providers/docker/v1/mgmt/notifications/chat.yaml"
	chat := v1alpha1.Notification{
		Name: "chat", Type: v1alpha1.NotifySlack, Environments: []string{"dev"}, Secret: "chat",
	}
	release := v1alpha1.Channel{Name: "release", Tag: "v*"}
	var released []byte
	for _, step := range []struct {
		name, source string
		edit         func(r *Repo) (*Edit, error)
	}{
		{"the environment", "", func(r *Repo) (*Edit, error) { return r.AddEnvironment("dev", EnvironmentOptions{}) }},
		{"the notification", "flux-system", func(r *Repo) (*Edit, error) { return r.AddNotification(chat) }},
		{"a channel without a tag", "flux-system", func(r *Repo) (*Edit, error) { return r.AddChannel(release, []string{"dev"}) }},
		{"its first tag", "release", func(r *Repo) (*Edit, error) { return r.Promote("", "v0.1.0", "", os.DirFS(r.Dir)) }},
		{"the notification again", "release", func(r *Repo) (*Edit, error) {
			var err error
			if released, err = r.read(file); err != nil {
				return nil, err
			}
			return r.AddNotification(chat)
		}},
		{"main again", "flux-system", func(r *Repo) (*Edit, error) { return r.SetEnvironment("dev", EnvironmentOptions{Channel: "main"}) }},
		{"a notification of an older fleetctl", "flux-system", func(r *Repo) (*Edit, error) {
			write(t, r.Dir, file, released)
			return r.AddNotification(chat)
		}},
		{"the end of the channel", "flux-system", func(r *Repo) (*Edit, error) {
			write(t, r.Dir, file, released)
			return r.RemoveChannel("release")
		}},
		{"a channel of a branch", "next", func(r *Repo) (*Edit, error) {
			return r.AddChannel(v1alpha1.Channel{Name: "next", Branch: "next"}, []string{"dev"})
		}},
	} {
		e, err := step.edit(r)
		_, r = done(t, r, e, err)
		if len(e.LeftAlone) > 0 {
			t.Errorf("%s: it leaves alone %q", step.name, e.LeftAlone)
		}
		if step.source == "" {
			continue
		}
		if got, err := r.read(file); err != nil || strings.Count(string(got), "kind: GitRepository\n") != 1 ||
			!strings.HasSuffix(string(got), "- kind: GitRepository\n    name: "+step.source+"\n") {
			t.Errorf("%s: it does not name %s (%v):\n%s", step.name, step.source, err, got)
		}
	}
	theirs, err := r.read(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.Dir, file, append(theirs, "  - kind: GitRepository\n    name: apps\n"...))
	e, err := r.SetEnvironment("dev", EnvironmentOptions{Channel: "main"})
	diff, _ := done(t, r, e, err)
	const says = "Add the GitRepository flux-system to its event sources."
	if strings.Contains(diff, file) || !strings.Contains(strings.Join(e.LeftAlone, "\n"), says) {
		t.Errorf("it leaves alone %q, and changes\n%s", e.LeftAlone, diff)
	}
}
