package render

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
	"github.com/fleetctl/fleetctl/pkg/render/internal/codec"
	"github.com/fleetctl/fleetctl/templates"
)

// releaseOf is what Helm gives to the templates of a chart.
func releaseOf(t testing.TB, l *loadedChart, values map[string]any) common.Values {
	t.Helper()
	caps, err := capabilities("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	top, err := util.ToRenderValuesWithSchemaValidation(l.chart, values,
		common.ReleaseOptions{Name: "x", Namespace: "x", Revision: 1, IsInstall: true}, caps, true)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// The templates of every chart make what Helm's own engine makes of them, run once and run again.
func TestTemplatesAreHelms(t *testing.T) {
	files, err := filepath.Glob("../../templates/testdata/values/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no values (%v)", err)
	}
	all := charts{repo: &repo{files: templates.Charts}}
	ours := map[*loadedChart]*parsedTemplates{} // what one cluster leaves behind must not show in the next
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			l := loadFor(t, &all, filepath.Base(file))
			fast := ours[l]
			if fast == nil {
				fast = newTemplates(l.chart)
				ours[l] = fast
			}
			if fast == nil {
				t.Fatal("the chart is left to Helm's engine")
			}
			for range 2 {
				var values map[string]any
				if err := yaml.Unmarshal(content, &values); err != nil {
					t.Fatal(err)
				}
				want, err := engine.Render(l.chart, releaseOf(t, l, values))
				if err != nil {
					t.Fatal(err)
				}
				got, err := fast.render(l.chart, releaseOf(t, l, values), 0, &whereabouts{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-Helm +got:\n%s", diff)
				}
			}
		})
	}
}

// loadFor loads the chart whose name the values' file begins with.
func loadFor(t testing.TB, all *charts, file string) *loadedChart {
	t.Helper()
	for _, flavour := range all.repo.folders("charts") {
		if !strings.HasPrefix(file, flavour+"-") {
			continue
		}
		l, err := all.load(path.Join("charts", flavour), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.parse(&valuesschema.Schemas{}); err != nil {
			t.Fatal(err)
		}
		return l
	}
	t.Fatalf("no chart for %s", file)
	return nil
}

// What fails has the words of Helm.
func TestTemplatesFail(t *testing.T) {
	all := charts{repo: &repo{files: templates.Charts}}
	l := loadFor(t, &all, "docker-x")
	values := releaseOf(t, l, map[string]any{})
	values["Values"] = map[string]any{"pools": "none"}
	_, want := engine.Render(l.chart, values)
	_, got := l.renderTemplates(l.chart, values, &whereabouts{})
	if want == nil || got == nil || got.Error() != want.Error() {
		t.Errorf("got %v, and Helm says %v", got, want)
	}
}

var plainValues = []string{
	`{}`, `[]`, `null`, `true`, `1`, `"a"`, `{"a":{},"b":[],"c":null,"d":-3,"e":"x/y.z","f":[{"g":[1,"h"],"i":{"j":1}}]}`,
	`{"fleet.example.com/number":"n17"}`, `{"a1":1,"a10":2,"a2":3}`, `{"a-b":1,"a.b":2,"ab":3}`, `{"A":1,"a":2}`, `{"a":"b c"}`, `{"a":1.5}`,
	`{"a":"true"}`, `{"a":"1"}`, `{"a":"1g"}`, `{"a":"a: b"}`, `{"y":"y"}`, `{"a":"x,y"}`, `{"a":"[x"}`, `{"a":["b\nc"]}`, `{"":1}`,
	`{"a":12345678901234567890}`,
}

// What is written here in place of the library is what the library writes.
func TestPlainYAML(t *testing.T) {
	plain := 0
	for _, text := range plainValues {
		if likeLibrary(t, text) {
			plain++
		}
	}
	if plain < 8 {
		t.Errorf("%d of %d are plain", plain, len(plainValues))
	}
}

func FuzzPlainYAML(f *testing.F) {
	for _, text := range plainValues {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return
		}
		canonical, err := json.Marshal(value)
		if err != nil {
			return
		}
		likeLibrary(t, string(canonical))
	})
}

// likeLibrary compares the YAML of a JSON value with the library's, where it is plain.
func likeLibrary(t *testing.T, text string) bool {
	t.Helper()
	got, ok := codec.PlainYAML([]byte(text))
	if !ok {
		return false
	}
	want, err := yaml.JSONToYAML([]byte(text))
	if err != nil || string(want) != got {
		t.Errorf("%s is\n%s\nand the library writes\n%s (%v)", text, got, want, err)
	}
	return true
}
