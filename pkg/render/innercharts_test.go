package render_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// archived is a chart as an archive.
func archived(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: "x/" + name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestInnerCharts renders charts with others in them that would take all memory or time. Each is an error that says what is too much.
func TestInnerCharts(t *testing.T) {
	const inner = "apiVersion: v2\nname: x\nversion: 1.0.0\n"
	nested := archived(t, map[string]string{"Chart.yaml": inner})
	for range 30 {
		nested = archived(t, map[string]string{"Chart.yaml": inner, "charts/x.tgz": nested})
	}
	large := map[string]string{}
	for i := range 2 { // what Helm takes of one archive
		files := map[string]string{"Chart.yaml": strings.ReplaceAll(inner, "x", fmt.Sprint("x", i))}
		for j := range 12 {
			files[fmt.Sprint(j)] = strings.Repeat("x", 5<<20)
		}
		large[fmt.Sprintf("charts/x%d.tgz", i)] = archived(t, files)
	}
	// chain is charts within charts, each of which has the next one for its dependency.
	chain := func(dependencies string) map[string]string {
		files, dir := map[string]string{}, ""
		for i := range 15 {
			files[dir+"Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: c%d\nversion: 1.0.0\ndependencies:\n", i) +
				strings.ReplaceAll(dependencies, "NEXT", fmt.Sprint("c", i+1))
			files[dir+"values.yaml"] = "data: {a: 1}\n"
			dir += fmt.Sprintf("charts/c%d/", i+1)
		}
		files[dir+"Chart.yaml"] = "apiVersion: v2\nname: c15\nversion: 1.0.0\n"
		return files
	}
	bomb := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n"
	for name, tt := range map[string]struct {
		files map[string]string
		says  string
	}{
		"no archive":          {map[string]string{"charts/x.tgz": "hello"}, "charts/bad/charts/x.tgz: it is no archive of a chart"},
		"archives in archive": {map[string]string{"charts/x.tgz": nested}, "more than 20 deep"},
		"large archives":      {large, "more than 100 MiB"},
		"aliases": {
			chain("- {name: NEXT, version: 1.0.0, alias: a}\n- {name: NEXT, version: 1.0.0, alias: b}\n"), "more than 2000 charts",
		},
		"import-values": {
			chain("- name: NEXT\n  version: 1.0.0\n  import-values: [{child: data, parent: data.a}, {child: data, parent: data.b}]\n"),
			"more than 2000 charts",
		},
		"values in an archive": {
			map[string]string{"charts/x.tgz": archived(t, map[string]string{"Chart.yaml": inner, "values.yaml": bomb})},
			"charts/bad/charts/x.tgz/values.yaml: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo, fleet, file := chartRepo(tt.files)
			findings := render.New(repo, fleet, render.Options{}).Declared(file, repo[file].Data)
			if len(findings) != 1 || !strings.Contains(findings[0].String(), tt.says) {
				t.Fatalf("findings: %.2000v", findings)
			}
		})
	}
	repo, fleet, file := chartRepo(map[string]string{"charts/x.tgz": archived(t, map[string]string{"Chart.yaml": inner})})
	if findings := render.New(repo, fleet, render.Options{}).Declared(file, repo[file].Data); len(findings) > 0 {
		t.Errorf("a chart with another in it: %v", findings)
	}
}
