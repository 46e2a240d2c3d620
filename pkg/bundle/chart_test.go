package bundle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// fillCharts makes a bundle that has only charts.
func fillCharts(t *testing.T, charts ...string) (dir string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "bundle")
	w, err := bundle.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.Fill(t.Context(), w, bundle.Sources{Charts: charts}, progress.Discard); err != nil {
		w.Discard()
		return dir, err
	}
	return dir, w.Close()
}

func chartFile(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCharts(t *testing.T) {
	registry := bundletest.Registry(t)
	bundletest.PushChart(t, registry+"/charts/web:1.2.0", "web", "1.2.0")
	local := bundletest.Chart(t, "db", "0.3.1+build.7")
	dir, err := fillCharts(t, chartFile(t, local), "oci://"+registry+"/charts/web:1.2.0", "oci://"+registry+"/charts/web:1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	var names []string
	for _, e := range b.Index() {
		if e.Kind != bundle.KindChart {
			t.Errorf("%+v is no chart", e)
		}
		names = append(names, e.Name)
	}
	if want := []string{"charts/db-0.3.1+build.7.tgz", "charts/web-1.2.0.tgz"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	got, err := b.ReadFile("charts/db-0.3.1+build.7.tgz")
	if err != nil || !slices.Equal(got, local) {
		t.Errorf("the archive was changed: %v", err)
	}
}

func TestChartErrors(t *testing.T) {
	registry := bundletest.Registry(t)
	bundletest.PushImage(t, registry+"/app:v1")
	archive := func(path, content string) string {
		return chartFile(t, bundletest.Archive(t, map[string]string{path: content}))
	}
	for name, tt := range map[string]struct{ source, want string }{
		"missing":      {filepath.Join(t.TempDir(), "none.tgz"), "none.tgz"},
		"folder":       {t.TempDir(), "not a regular file"},
		"no archive":   {chartFile(t, []byte("text")), "no gzip archive"},
		"no tar":       {chartFile(t, bundletest.Archive(t, nil)[:12]), "not a Helm chart"},
		"no Chart":     {archive("db/values.yaml", "a: 1"), "no Chart.yaml"},
		"deep Chart":   {archive("db/charts/x/Chart.yaml", "name: x\nversion: 1.0.0\n"), "no Chart.yaml"},
		"no version":   {archive("db/Chart.yaml", "name: db\n"), `name "db" and version ""`},
		"traversal":    {archive("db/Chart.yaml", "name: ../../evil\nversion: 1.0.0\n"), `name "../../evil"`},
		"hidden":       {archive("db/Chart.yaml", "name: .db\nversion: 1.0.0\n"), `name ".db"`},
		"version path": {archive("db/Chart.yaml", "name: db\nversion: 1/../../x\n"), "version"},
		"huge Chart":   {archive("db/Chart.yaml", strings.Repeat("#", 2<<20)), "larger than"},
		"bomb":         {archive("db/zeros", strings.Repeat("\x00", 65<<20)), "more than its size allows"},
		"no tag":       {"oci://" + registry + "/app", "app"},
		"an image":     {"oci://" + registry + "/app:v1", "not a Helm chart"},
		"no such":      {"oci://" + registry + "/absent:1.0.0", "absent"},
		"silent":       {"oci://127.0.0.1:1/absent:1.0.0", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := fillCharts(t, tt.source)
			if err == nil || !strings.Contains(err.Error(), "add chart "+tt.source) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if diag.Hint(err) == "" {
				t.Errorf("no hint for %v", err)
			}
			if _, err := bundle.Open(t.Context(), dir); err == nil {
				t.Error("there is a bundle")
			}
		})
	}
}

func TestOneNameForTwoCharts(t *testing.T) {
	other := bundletest.Archive(t, map[string]string{"db/Chart.yaml": "name: db\nversion: 1.0.0\n# other\n"})
	_, err := fillCharts(t, chartFile(t, bundletest.Chart(t, "db", "1.0.0")), chartFile(t, other))
	if err == nil || !strings.Contains(err.Error(), "the bundle already has this name") {
		t.Errorf("got %v", err)
	}
}
