package render_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Every case of every chart renders to what Helm's own program makes of it: the golden files of the charts are its output.
func TestAsHelm(t *testing.T) {
	const values, golden = "../../templates/testdata/values", "../../templates/testdata/golden"
	cases, err := filepath.Glob(filepath.Join(values, "*.yaml"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	flavours, err := scaffold.Flavours()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		i := slices.IndexFunc(flavours, func(f string) bool { return strings.HasPrefix(name, f+"-") })
		if i < 0 {
			t.Fatalf("%s is of no flavour", name)
		}
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]any
			if err := yaml.Unmarshal(content, &all); err != nil {
				t.Fatal(err)
			}
			got := objectsOf(t, flavours[i], all)
			text, err := os.ReadFile(filepath.Join(golden, name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(parsed(t, string(text)), got); diff != "" {
				t.Errorf("-helm +ours:\n%s", diff)
			}
		})
	}
}

// objectsOf renders a cluster called x, and returns the objects of its chart, by kind and name.
func objectsOf(t *testing.T, flavour string, values map[string]any) []map[string]any {
	t.Helper()
	files, err := scaffold.ClusterFiles(scaffold.ClusterOptions{
		Name: "x", Layout: layout.Layout{Cloud: "docker", Generation: "v1"}, Environment: "dev", Flavour: flavour, Values: values,
	})
	if err != nil {
		t.Fatal(err)
	}
	chart, err := scaffold.EnvironmentChart(layout.Layout{Cloud: "docker", Generation: "v1"}, "dev", flavour)
	if err != nil {
		t.Fatal(err)
	}
	dir := repoWith(t, map[string]string{"fleet.yaml": fleetYAML, files[0].Path: string(files[0].Content), chart.Path: string(chart.Content)})
	res, err := renderer(t, dir, "").Cluster(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if res.Findings != nil {
		t.Fatal(res.Findings)
	}
	var out []string
	for _, o := range res.Objects {
		if o.Owner.Kind == render.KindHelmRelease {
			out = append(out, string(o.YAML()))
		}
	}
	return parsed(t, strings.Join(out, "---\n"))
}

// parsed reads objects and sorts them. A namespace is what Helm adds when it installs, and `helm template` does not.
func parsed(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for document := range strings.SplitSeq(text, "---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o == nil {
			continue
		}
		if metadata, ok := o["metadata"].(map[string]any); ok && metadata["namespace"] == "x" {
			delete(metadata, "namespace")
		}
		all = append(all, o)
	}
	key := func(o map[string]any) string {
		text, err := json.Marshal([]any{o["kind"], o["metadata"]})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return cmp.Compare(key(a), key(b)) })
	return all
}
