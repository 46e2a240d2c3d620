package fleetrepo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// olderChart is the chart docker as an older fleetctl would have brought it: a file is missing, one is there that went, and a line differs.
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

// chartRepo is a fleet repo whose chart docker an older fleetctl brought, and which the team has changed since, as change says.
func chartRepo(t *testing.T, change func(path string, content []byte) []byte) (*Repo, ChartHistory) {
	t.Helper()
	dir := t.TempDir()
	const fleet = "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: x\nspec:\n  managementClusters:\n  - name: m\n    providers:\n    - name: docker\n"
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	r := reopen(t, dir)
	older := olderChart(t)
	var changes manifest.ChangeSet
	for _, f := range older {
		changes.Write(manifest.File{Path: f.Path, Content: change(f.Path, f.Content)})
	}
	lock, err := v1alpha1.MarshalLock(&v1alpha1.Lock{Charts: []v1alpha1.LockedChart{{Name: "docker", Fleetctl: "v0.0.1", SHA256: scaffold.Digest(older)}}})
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
		"nobody changed it":       {change: untouched, want: map[string]string{values: "serviceDomain: cluster.local"}},
		"the team changed a file": {change: replace(readme, "# docker", "# our docker"), want: map[string]string{readme: "# our docker", values: "serviceDomain: cluster.local"}},
		"the team changed a line": {change: replace(values, "replicas: 1", "replicas: 3"), want: map[string]string{values: "replicas: 3"}},
		"both changed a line":     {change: replace(values, "old.local", "team.local"), fails: values},
		"the team's line counts":  {change: replace(values, "old.local", "team.local"), prefer: PreferTeam, want: map[string]string{values: "team.local"}},
		"fleetctl's line counts":  {change: replace(values, "old.local", "team.local"), prefer: PreferFleetctl, want: map[string]string{values: "cluster.local"}},
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

// Without the history nobody can tell the team's changes from ours.
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
