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
	"testing/fstest"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// tgz returns an archive of files, content by path.
func tgz(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const chartOrigin = `apiVersion: source.toolkit.fluxcd.io/v1
kind: %s
metadata: {name: web, namespace: flux-system}
spec: {%s}
`

const chartRelease = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  %s
  targetNamespace: web
  valuesFrom: [{kind: ConfigMap, name: web-values}]
`

const chartValues = `apiVersion: v1
kind: ConfigMap
metadata: {name: web-values, namespace: flux-system}
data:
  values.yaml: |
    # Of web.
    color: %s
`

// oneChart is a fleet whose management cluster has a chart from outside of the repo.
func oneChart(kind, spec, from, color string) fstest.MapFS {
	const dir = "providers/docker/v1/mgmt/"
	return fstest.MapFS{
		dir + "flux-system/gotk.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n")},
		dir + "source.yaml":           {Data: fmt.Appendf(nil, chartOrigin, kind, spec)},
		dir + "release.yaml":          {Data: fmt.Appendf(nil, chartRelease, from)},
		dir + "values.yaml":           {Data: fmt.Appendf(nil, chartValues, color)},
	}
}

func fleetOf(t *testing.T) *v1alpha1.Fleet {
	t.Helper()
	fleet, err := v1alpha1.Decode("fleet.yaml", []byte(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  managementClusters:
  - {name: mgmt, host: {type: kind}, providers: [{name: docker}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

var webFiles = map[string]string{
	"web/Chart.yaml":         "apiVersion: v2\nname: web\nversion: 1.2.0\n",
	"web/values.schema.json": `{"properties": {"color": {"enum": ["red", "blue"]}}, "additionalProperties": false}`,
	"web/templates/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: made}
data: {color: {{ .Values.color }}}
`,
}

// The chart of a HelmRelease is the one that the sources of the repo name, and it is asked for once.
func TestOutsideChart(t *testing.T) {
	chart := "chart: {spec: {chart: web, version: %s, sourceRef: {kind: HelmRepository, name: web}}}"
	byRef := "chartRef: {kind: OCIRepository, name: web}"
	for name, c := range map[string]struct{ kind, spec, from, address string }{
		"an artifact": {"OCIRepository", `url: "oci://r.example.com/charts/web", ref: {tag: "1.2.0"}`, byRef, "oci://r.example.com/charts/web"},
		"an artifact with its digest": {
			"OCIRepository", `url: "oci://r.example.com/web", ref: {tag: "1.2.0", digest: "sha256:0"}`, byRef, "oci://r.example.com/web",
		},
		"a repository": {"HelmRepository", `url: "https://c.example.com/"`, fmt.Sprintf(chart, "1.2.0"), "https://c.example.com/web"},
		"a range":      {"OCIRepository", `url: "oci://r.example.com/web", ref: {semver: ">1", tag: "1.2.0"}`, byRef, ""},
		"no version":   {"HelmRepository", `url: "https://c.example.com"`, "chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: web}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			r := render.New(oneChart(c.kind, c.spec, c.from, "red"), fleetOf(t), render.Options{
				Outside: func(wanted render.OutsideChart) ([]byte, bool) {
					asked++
					return tgz(t, webFiles), wanted == render.OutsideChart{Address: c.address, Version: "1.2.0"}
				},
			})
			result, err := r.All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(result.Objects, func(o *render.Object) bool { return o.Name == "made" })
			if rendered := i >= 0; rendered != (c.address != "") || rendered != (asked == 1) || rendered != (result.Findings == nil) {
				t.Fatalf("rendered: %v, asked %d times, and found %v", rendered, asked, result.Findings)
			}
			if i < 0 {
				return
			}
			made := result.Objects[i]
			if made.Template != "web-1.2.0.tgz/templates/a.yaml" || made.Namespace != "web" || !strings.Contains(string(made.JSON), "red") {
				t.Errorf("made %s of %s: %s", made.ID(), made.Template, made.JSON)
			}
		})
	}
}

// A chart is hostile input. What is wrong with it, and with its values, is reported in files that the repo has.
func TestOutsideFindings(t *testing.T) {
	with := func(name, content string) []byte {
		files := maps.Clone(webFiles)
		files[name] = content
		return tgz(t, files)
	}
	bomb := with("web/files/zeros", strings.Repeat("\x00", 5<<20))
	var headers bytes.Buffer
	z := gzip.NewWriter(&headers)
	w := tar.NewWriter(z)
	for i := range 250_000 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("web/%d", i), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	const dir = "providers/docker/v1/mgmt/"
	for name, c := range map[string]struct {
		archive []byte
		color   string
		want    string
	}{
		"a value":       {tgz(t, webFiles), "green", dir + "values.yaml:7: color: value must be one of"},
		"an unknown":    {tgz(t, webFiles), "red\n    colour: red", dir + "values.yaml:8: colour: the chart web has no such value"},
		"a template":    {with("web/templates/b.yaml", `{{ fail "no" }}`), "red", dir + "release.yaml:1: HelmRelease flux-system/web: execution error"},
		"a chart":       {with("web/Chart.yaml", "name: ["), "red", dir + "release.yaml:1: HelmRelease flux-system/web: "},
		"a schema":      {with("web/values.schema.json", `{"type": 7}`), "red", dir + "release.yaml:1: HelmRelease flux-system/web: web-1.2.0.tgz/values.schema.json:1: "},
		"no archive":    {[]byte("hello"), "red", dir + "release.yaml:1: HelmRelease flux-system/web: web-1.2.0.tgz: it is no archive of a chart"},
		"aliases":       {with("web/values.yaml", aliases), "red", dir + "release.yaml:1: HelmRelease flux-system/web: web-1.2.0.tgz/values.yaml"},
		"outside":       {with("web/../../x", ""), "red", dir + "release.yaml:1: HelmRelease flux-system/web: web-1.2.0.tgz: it is no archive of a chart"},
		"only headers":  {headers.Bytes(), "red", dir + "release.yaml:1: HelmRelease flux-system/web: web-1.2.0.tgz: it is no archive of a chart: it has more than"},
		"a large chart": {bomb, "red", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := render.New(oneChart("OCIRepository", `url: "oci://r.example.com/web", ref: {tag: "1.2.0"}`,
				"chartRef: {kind: OCIRepository, name: web}", c.color), fleetOf(t),
				render.Options{Outside: func(render.OutsideChart) ([]byte, bool) { return c.archive, true }})
			result, err := r.All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range result.Findings {
				got += fmt.Sprintf("%s:%d: %s\n", f.File, f.Line, f.Summary)
			}
			if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || strings.Count(got, "\n") > 1 {
				t.Errorf("got %swant %s", got, c.want)
			}
			if rendered := result.Releases[0].Rendered; rendered != (c.want == "") {
				t.Errorf("rendered: %v", rendered)
			}
		})
	}
}

// aliases are values that a parser makes a million values of.
var aliases = func() string {
	text := "a0: &a0 [" + strings.TrimSuffix(strings.Repeat("x, ", 10), ", ") + "]\n"
	for i := 1; i < 8; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text
}()
