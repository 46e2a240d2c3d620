package templates_test

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/templates"
)

// Every chart is named after its folder, and its schema closes every object and describes every value of values.yaml.
func TestCharts(t *testing.T) {
	for _, flavour := range flavours(t) {
		t.Run(flavour, func(t *testing.T) {
			var chart struct{ Name, Version, Description string }
			decode(t, "charts/"+flavour+"/Chart.yaml", &chart)
			if chart.Name != flavour || chart.Version == "" || chart.Description == "" {
				t.Errorf("Chart.yaml: %+v", chart)
			}
			s := schemaOf(t, flavour)
			checkSchema(t, "", s)
			checkValues(t, "", defaults(t, flavour), s)
		})
	}
}

func checkSchema(t *testing.T, at string, s *schema) {
	t.Helper()
	if at != "" && s.Description == "" && !strings.HasSuffix(at, "[]") {
		t.Errorf("%s has no description", at)
	}
	if s.Type == "object" && len(s.AdditionalProperties) == 0 {
		t.Errorf("%q admits unknown keys", at)
	}
	if s.Type == "array" && s.MaxItems == nil {
		t.Errorf("%q has no limit", at)
	}
	for name, property := range s.Properties {
		checkSchema(t, at+"."+name, property)
	}
	if s.Items != nil {
		checkSchema(t, at+"[]", s.Items)
	}
}

func checkValues(t *testing.T, at string, values map[string]any, s *schema) {
	t.Helper()
	for name, value := range values {
		property := s.Properties[name]
		if property == nil {
			if string(s.AdditionalProperties) == "false" {
				t.Errorf("the schema does not know %s.%s", at, name)
			}
			continue
		}
		if nested, ok := value.(map[string]any); ok {
			checkValues(t, at+"."+name, nested, property)
		}
	}
}

// Each chart has its own copy of the shared templates, because it stands alone in a fleet repo. The copies are equal.
func TestShared(t *testing.T) {
	all := flavours(t)
	kubeadm := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return !strings.HasSuffix(f, "-kubeadm") })
	machines := append([]string{"docker", "in-memory"}, kubeadm...)
	scaled := append([]string{"aws-eks"}, machines...)
	for file, charts := range map[string][]string{
		"_cluster.tpl": all, "_autoscaler.tpl": scaled, "health-checks.yaml": machines,
		"autoscaler.yaml": scaled,
		"_kubeadm.tpl":    kubeadm, "control-plane.yaml": kubeadm, "pools.yaml": kubeadm,
	} {
		first := path.Join("charts", charts[0], "templates", file)
		want := read(t, first)
		for _, chart := range charts[1:] {
			other := path.Join("charts", chart, "templates", file)
			if diff := cmp.Diff(string(want), string(read(t, other))); diff != "" {
				t.Errorf("%s and %s differ:\n%s", first, other, diff)
			}
		}
	}
}

// No chart makes a Secret or reads one, so no value holds a credential.
func TestNoSecrets(t *testing.T) {
	err := fs.WalkDir(templates.Charts, "charts", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && bytes.Contains(read(t, name), []byte("kind: Secret\n")) && strings.Contains(name, "/templates/") {
			t.Errorf("%s makes a Secret", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func flavours(t *testing.T) []string {
	t.Helper()
	entries, err := templates.Charts.ReadDir("charts")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Contains(names, "docker") || !slices.Contains(names, "in-memory") {
		t.Fatalf("charts are %v", names)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := fs.ReadFile(templates.Charts, name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decode(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, name), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
