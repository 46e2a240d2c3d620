package templates_test

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/templates"
)

// schema is what the tests look at of a values.schema.json.
type schema struct {
	Type                 any                `json:"type"`
	Description          string             `json:"description"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
	Items                *schema            `json:"items"`
}

// Every chart is named after its folder, and its schema closes every object and describes every value of values.yaml.
func TestCharts(t *testing.T) {
	for _, flavour := range flavours(t) {
		t.Run(flavour, func(t *testing.T) {
			var chart struct{ Name, Version, Description string }
			decode(t, "charts/"+flavour+"/Chart.yaml", &chart)
			if chart.Name != flavour || chart.Version == "" || chart.Description == "" {
				t.Errorf("Chart.yaml: %+v", chart)
			}
			var s schema
			decode(t, "charts/"+flavour+"/values.schema.json", &s)
			checkSchema(t, "", &s)
			var values map[string]any
			decode(t, "charts/"+flavour+"/values.yaml", &values)
			checkValues(t, "", values, &s)
		})
	}
}

func checkSchema(t *testing.T, path string, s *schema) {
	t.Helper()
	if path != "" && s.Description == "" && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s has no description", path)
	}
	if s.Type == "object" && len(s.AdditionalProperties) == 0 {
		t.Errorf("%q admits unknown keys", path)
	}
	for name, property := range s.Properties {
		checkSchema(t, path+"."+name, property)
	}
	if s.Items != nil {
		checkSchema(t, path+"[]", s.Items)
	}
}

func checkValues(t *testing.T, path string, values map[string]any, s *schema) {
	t.Helper()
	for name, value := range values {
		property := s.Properties[name]
		if property == nil {
			if string(s.AdditionalProperties) == "false" {
				t.Errorf("the schema does not know %s.%s", path, name)
			}
			continue
		}
		if nested, ok := value.(map[string]any); ok {
			checkValues(t, path+"."+name, nested, property)
		}
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

func decode(t *testing.T, name string, into any) {
	t.Helper()
	content, err := fs.ReadFile(templates.Charts, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
