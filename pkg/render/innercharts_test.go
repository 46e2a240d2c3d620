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

// What comes from a chart within a chart is told of where it stands: in an archive, in a folder of another name, and under an alias.
func TestPlacesOfInnerCharts(t *testing.T) {
	inner := func(name string) map[string]string {
		return map[string]string{
			"Chart.yaml":          "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
			"crds/c.yaml":         "apiVersion: v1\nkind: Thing\nmetadata: {name: crd-of-" + name + "}\n",
			"templates/t.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\n",
			"values.schema.json":  `{"properties": {"a": {"type": "string"}}}`,
			"templates/NOTES.txt": "hello",
		}
	}
	db := inner("db")
	db["charts/deep-2.tgz"] = archived(t, inner("deep"))
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: bad\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}, {name: web, version: 1.0.0, " +
			"alias: shop}, {name: other, version: 1.0.0}]\n",
		"charts/db-1.0.0.tgz": archived(t, db), "charts/web-1.tgz": archived(t, inner("web")),
	}
	for name, text := range inner("other") {
		files["charts/folder/"+name] = text
	}
	repo, fleet, _ := chartRepo(files)
	release := func(values string) []byte {
		return []byte(`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"shop","namespace":"shop"},"spec":` +
			`{"interval":"1m","values":` + values + `,"chart":{"spec":{"chart":"./charts/bad","sourceRef":{"kind":"GitRepository","name":"x"}}}}}`)
	}
	objects, findings := render.New(repo, fleet, render.Options{}).Release(release("{}"), "charts/bad", nil)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	places := map[string]string{}
	for _, o := range objects {
		places[o.Name] = o.Template
	}
	const archive = "charts/bad/charts/db-1.0.0.tgz/"
	want := map[string]string{
		"db": archive + "templates/t.yaml", "crd-of-db": archive + "crds/c.yaml",
		"deep": archive + "charts/deep-2.tgz/templates/t.yaml", "crd-of-deep": archive + "charts/deep-2.tgz/crds/c.yaml",
		"shop": "charts/bad/charts/web-1.tgz/templates/t.yaml", "crd-of-web": "charts/bad/charts/web-1.tgz/crds/c.yaml",
		"other": "charts/bad/charts/folder/templates/t.yaml", "crd-of-other": "charts/bad/charts/folder/crds/c.yaml",
	}
	if !maps.Equal(places, want) {
		t.Errorf("the objects come from %v", places)
	}
	for _, chart := range []string{"db", "shop", "other"} { // whose schemas hold, under whatever name
		values := release(`{"` + chart + `":{"a":1}}`)
		if _, findings := render.New(repo, fleet, render.Options{}).Release(values, "charts/bad", nil); len(findings) != 1 {
			t.Errorf("values that %s refuses: %v", chart, findings)
		}
	}
}
