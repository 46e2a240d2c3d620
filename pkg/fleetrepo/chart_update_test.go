package fleetrepo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/internal/charts"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// olderChart returns the chart docker of an older fleetctl: a file is missing, a removed file still exists, and a line differs.
func olderChart(t *testing.T) []manifest.File {
	t.Helper()
	files, err := scaffold.ChartFiles("docker")
	if err != nil {
		t.Fatal(err)
	}
	var older []manifest.File
	for _, f := range files {
		switch filepath.Base(f.Path) {
		case "health-checks.yaml":
			continue
		case "values.yaml":
			f.Content = bytes.Replace(f.Content, []byte("  serviceDomain: cluster.local"), []byte("  serviceDomain: old.local"), 1)
		}
		older = append(older, f)
	}
	return append(older, manifest.File{Path: "charts/docker/templates/gone.yaml", Content: []byte("{}\n")})
}

// chartRepo returns a fleet repo with the chart docker of an older fleetctl, which the team has changed since, as change says.
func chartRepo(t *testing.T, change func(path string, content []byte) []byte) (*Repo, ChartHistory) {
	t.Helper()
	dir := t.TempDir()
	const fleet = "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: x\nspec:\n  managementClusters:\n  - name: m\n    " +
		"providers:\n    - name: docker\n"
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	r := reopen(t, dir)
	older := olderChart(t)
	var changes manifest.ChangeSet
	for _, f := range older {
		changes.Write(manifest.File{Path: f.Path, Content: change(f.Path, f.Content)})
	}
	lock, err := v1alpha1.MarshalLock(
		&v1alpha1.Lock{Charts: []v1alpha1.LockedChart{{Name: "docker", Fleetctl: "v0.0.1", SHA256: scaffold.Digest(older)}}})
	if err != nil {
		t.Fatal(err)
	}
	changes.Write(manifest.File{Path: v1alpha1.LockFileName, Content: lock})
	if _, err := changes.Apply(r.Dir); err != nil {
		t.Fatal(err)
	}
	return r, func(name, sha256 string) ([]manifest.File, error) {
		if name != "docker" || sha256 != scaffold.Digest(older) {
			return nil, nil
		}
		return older, nil
	}
}

func TestUpdateCharts(t *testing.T) {
	const readme, values = "charts/docker/README.md", "charts/docker/values.yaml"
	untouched := func(_ string, content []byte) []byte { return content }
	replace := func(file, from, to string) func(string, []byte) []byte {
		return func(path string, content []byte) []byte {
			if path != file {
				return content
			}
			if !bytes.Contains(content, []byte(from)) {
				t.Fatalf("%s does not have %q", file, from)
			}
			return bytes.Replace(content, []byte(from), []byte(to), 1)
		}
	}
	for name, c := range map[string]struct {
		change func(string, []byte) []byte
		prefer Prefer
		want   map[string]string // lines that a file has afterwards
		fails  string
	}{
		"nobody changed it": {change: untouched, want: map[string]string{values: "serviceDomain: cluster.local"}},
		"the team changed a file": {
			change: replace(readme, "# docker", "# our docker"),
			want:   map[string]string{readme: "# our docker", values: "serviceDomain: cluster.local"},
		},
		"the team changed a line": {change: replace(values, "replicas: 1", "replicas: 3"), want: map[string]string{values: "replicas: 3"}},
		"both changed a line":     {change: replace(values, "old.local", "team.local"), fails: values},
		"the team's line counts": {
			change: replace(values, "old.local", "team.local"), prefer: PreferTeam,
			want: map[string]string{values: "team.local"},
		},
		"fleetctl's line counts": {
			change: replace(values, "old.local", "team.local"), prefer: PreferFleetctl,
			want: map[string]string{values: "cluster.local"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, history := chartRepo(t, c.change)
			e, err := r.UpdateCharts(nil, c.prefer, history)
			if c.fails != "" {
				if found := findingsOf("", err); err == nil || len(found) != 1 || found[0].File != c.fails {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Changes.Apply(r.Dir); err != nil {
				t.Fatal(err)
			}
			for file, line := range c.want {
				if content, err := os.ReadFile(filepath.Join(r.Dir, file)); err != nil || !strings.Contains(string(content), line) {
					t.Errorf("%s does not have %q: %v", file, line, err)
				}
			}
			if r.exists("charts/docker/templates/gone.yaml") || !r.exists("charts/docker/templates/health-checks.yaml") {
				t.Error("files did not come and go")
			}
			charts, err := r.Charts()
			if err != nil || len(charts) != 1 || charts[0].State != ChartCurrent {
				t.Errorf("afterwards: %+v, %v", charts, err)
			}
			if again, err := r.UpdateCharts(nil, PreferNobody, history); err != nil || len(again.Changes.Files()) > 0 {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// An update also adds a new empty file, and removes an empty file that the new chart lacks.
func TestUpdateChartWithEmptyFiles(t *testing.T) {
	r, history := chartRepo(t, func(_ string, content []byte) []byte { return content })
	lock, err := r.readLock()
	if err != nil {
		t.Fatal(err)
	}
	locked, brought := lockedChart(lock, "docker")
	const file = "charts/docker/templates/empty.yaml"
	var e Edit
	if _, err := r.updateChart(&e, "docker", locked, append(brought, manifest.File{Path: file}), PreferNobody, history); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Changes.Apply(r.Dir); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(r.Dir, filepath.FromSlash(file))); err != nil || len(content) > 0 {
		t.Errorf("the empty file: %q, %v", content, err)
	}
	lockChart(lock, "docker", append(brought, manifest.File{Path: file}))
	e = Edit{}
	if _, err := r.updateChart(&e, "docker", &lock.Charts[0], brought, PreferNobody, history); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Changes.Apply(r.Dir); err != nil {
		t.Fatal(err)
	}
	if r.exists(file) {
		t.Error("the empty file stays")
	}
}

// Without the Git history, fleetctl cannot distinguish the team's changes from its own.
func TestUpdateChartWithoutHistory(t *testing.T) {
	r, _ := chartRepo(t, func(_ string, content []byte) []byte { return append(content, '\n') })
	_, err := r.UpdateCharts([]string{"docker"}, PreferNobody, func(string, string) ([]manifest.File, error) { return nil, nil })
	if err == nil || !strings.Contains(err.Error(), "no commit here has it as fleetctl v0.0.1 brought it") || diag.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
	if _, err := r.UpdateCharts([]string{"dokcer"}, PreferNobody, nil); diag.Code(err) != diag.ExitUsage {
		t.Errorf("an unknown chart: %v", err)
	}
}

// After an update that keeps changes of the team, no commit has fleetctl's own chart. The next update finds a copy of it beside the charts.
func TestUpdateChartAgain(t *testing.T) {
	const kept, note = "charts/.brought/docker", "our note\n"
	r, history := chartRepo(t, func(path string, content []byte) []byte {
		if path == "charts/docker/README.md" {
			return append(content, note...)
		}
		return content
	})
	update := func(r *Repo, history ChartHistory) {
		t.Helper()
		e, err := r.UpdateCharts(nil, PreferNobody, history)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Changes.Apply(r.Dir); err != nil {
			t.Fatal(err)
		}
		if readme, err := r.read("charts/docker/README.md"); err != nil || !strings.HasSuffix(string(readme), note) {
			t.Errorf("the team's change is gone: %v", err)
		}
	}
	update(r, history)
	brought, err := scaffold.ChartFiles("docker")
	if err != nil {
		t.Fatal(err)
	}
	if files, err := r.keptChart("docker"); err != nil || scaffold.Digest(files) != scaffold.Digest(brought) {
		t.Fatalf("%s is not what fleetctl brought: %v", kept, err)
	}
	if charts, err := r.Charts(); err != nil || len(charts) != 1 || charts[0].State != ChartCurrent || !charts[0].Changed {
		t.Errorf("afterwards: %+v, %v", charts, err)
	}

	// The same repo when an older fleetctl had done that: Git knows nothing, the folder beside the charts does.
	r, _ = chartRepo(t, func(path string, content []byte) []byte {
		if path == "charts/docker/README.md" {
			return append(content, note...)
		}
		return content
	})
	var before manifest.ChangeSet
	for _, f := range olderChart(t) {
		before.Write(manifest.File{Path: kept + strings.TrimPrefix(f.Path, "charts/docker"), Content: f.Content})
	}
	if _, err := before.Apply(r.Dir); err != nil {
		t.Fatal(err)
	}
	update(r, func(string, string) ([]manifest.File, error) { return nil, nil })
	if files, err := r.keptChart("docker"); err != nil || scaffold.Digest(files) != scaffold.Digest(brought) {
		t.Errorf("%s is not what fleetctl brought: %v", kept, err)
	}

	// Without changes of the team nothing has to be kept.
	for _, f := range brought {
		if err := os.WriteFile(filepath.Join(r.Dir, filepath.FromSlash(f.Path)), f.Content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	relock(t, r, "docker", "v0.0.1", olderChart(t))
	e, err := r.UpdateCharts(nil, PreferTeam, func(string, string) ([]manifest.File, error) { return olderChart(t), nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Changes.Apply(r.Dir); err != nil || r.exists(kept+"/Chart.yaml") {
		t.Errorf("%s is still there: %v", kept, err)
	}
}

// A chart that Git for Windows has written with CRLF is unchanged. An update merges it as the one that Git keeps, and each file keeps its
// ends of lines.
func TestUpdateChartsWithCRLF(t *testing.T) {
	const readme = "charts/docker/README.md"
	for name, ours := range map[string]string{"unchanged": "# docker", "changed": "# our docker"} {
		t.Run(name, func(t *testing.T) {
			r, history := chartRepo(t, func(path string, content []byte) []byte {
				if path == readme {
					content = bytes.Replace(content, []byte("# docker"), []byte(ours), 1)
				}
				return withCRLF(content)
			})
			if charts, err := r.Charts(); err != nil || len(charts) != 1 || charts[0].Changed != (name == "changed") {
				t.Errorf("%+v, %v", charts, err)
			}
			e, err := r.UpdateCharts(nil, PreferNobody, history)
			diff, r := done(t, r, e, err)
			for _, f := range must(scaffold.ChartFiles("docker")) {
				want := f.Content
				if f.Path == readme {
					want = bytes.Replace(want, []byte("# docker"), []byte(ours), 1)
				}
				if got := must(r.read(f.Path)); !manifest.SameText(got, want) {
					t.Errorf("%s: %q", f.Path, got)
				}
			}
			if got := must(r.read("charts/docker/values.yaml")); !manifest.CRLF(got) || strings.Contains(diff, "b/charts/docker/Chart.yaml") {
				t.Errorf("it changes more than is new: %q", diff)
			}
		})
	}
}

// relock makes fleet.lock say that some fleetctl brought a chart with these files.
func relock(t *testing.T, r *Repo, name, by string, files []manifest.File) {
	t.Helper()
	lock, err := v1alpha1.MarshalLock(
		&v1alpha1.Lock{Charts: []v1alpha1.LockedChart{{Name: name, Fleetctl: by, SHA256: scaffold.Digest(files)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, v1alpha1.LockFileName), lock, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An update leaves a chart without a record in fleet.lock as it is, unless the user names it. Then it merges the chart of this fleetctl.
func TestUpdateUnknownChart(t *testing.T) {
	const values = "charts/docker/values.yaml"
	nothing := func(string, string) ([]manifest.File, error) { return nil, nil }
	r, _ := chartRepo(t, func(_ string, content []byte) []byte { return content })
	if err := os.Remove(filepath.Join(r.Dir, v1alpha1.LockFileName)); err != nil {
		t.Fatal(err)
	}
	e, err := r.UpdateCharts(nil, PreferNobody, nothing)
	if err != nil || len(e.Changes.Files()) > 0 || len(e.LeftAlone) != 1 || !strings.Contains(e.LeftAlone[0], "fleetctl chart update docker") {
		t.Errorf("without a name: %v, %v", e.LeftAlone, err)
	}
	_, err = r.UpdateCharts([]string{"docker"}, PreferNobody, nothing)
	if found := findingsOf("", err); len(found) != 1 || found[0].File != values ||
		!strings.Contains(found[0].Summary, "nothing says which differences are the team's") {
		t.Errorf("named: %v", err)
	}
	if e, err = r.UpdateCharts([]string{"docker"}, PreferTeam, nothing); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Changes.Apply(r.Dir); err != nil {
		t.Fatal(err)
	}
	if content, err := r.read(values); err != nil || !strings.Contains(string(content), "old.local") {
		t.Errorf("the team's file: %v", err)
	}
	if charts, err := r.Charts(); err != nil || charts[0].State != ChartCurrent || !charts[0].Changed {
		t.Errorf("afterwards: %+v, %v", charts, err)
	}
}

// The state of a chart, by what fleet.lock says of it.
func TestChartStates(t *testing.T) {
	brought, err := scaffold.ChartFiles("docker")
	if err != nil {
		t.Fatal(err)
	}
	older := olderChart(t)
	for name, c := range map[string]struct {
		have    []manifest.File
		locked  *v1alpha1.LockedChart
		want    ChartState
		changed bool
	}{
		"brought before there was a lock": {brought, nil, ChartCurrent, false},
		"changed before there was a lock": {older, nil, ChartOwn, false},
		"as it was brought":               {brought, &v1alpha1.LockedChart{SHA256: scaffold.Digest(brought)}, ChartCurrent, false},
		"changed since":                   {older, &v1alpha1.LockedChart{SHA256: scaffold.Digest(brought)}, ChartCurrent, true},
		"of an older fleetctl":            {older, &v1alpha1.LockedChart{Fleetctl: "v0.0.1", SHA256: scaffold.Digest(older)}, ChartBehind, false},
	} {
		if got := charts.Compare("docker", c.have, c.locked, brought); got.State != c.want || got.Changed != c.changed {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
