package fleetrepo

import (
	"encoding/json"
	"io/fs"
	"path"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
	"github.com/fleetctl/fleetctl/templates"
)

// chartFiles returns the files of that name in all charts.
func chartFiles(f *testing.F, name string) [][]byte {
	f.Helper()
	names, err := fs.Glob(templates.Charts, path.Join("charts", "*", name))
	if err != nil || len(names) == 0 {
		f.Fatalf("no chart has a %s (%v)", name, err)
	}
	all := make([][]byte, 0, len(names))
	for _, name := range names {
		all = append(all, must(templates.Charts.ReadFile(name)))
	}
	return all
}

// With any content of a file of --values: the file's faults are found in the file, and its values are read the same from a cluster's file.
func FuzzValues(f *testing.F) {
	for _, content := range chartFiles(f, "values.yaml") {
		f.Add(content)
	}
	for _, text := range []string{
		"", "# nothing\n", "a: &a {b: c}\nd: *a\n<<: *a\n", "a: 1\n---\nb: 2\n", "- a\n",
		"a: 2026-01-01\nb: 0o7\nc: 1e3\nd: .inf\ne: ~\n", "? [a]\n: b\n", "1: a\ntrue: b\n", "a: !!binary aGk=\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		values, err := ParseValues("values.yaml", content)
		if err != nil {
			//nolint:errorlint // the very type
			if findings, ok := err.(diag.Findings); !ok || len(findings) == 0 || findings[0].File != "values.yaml" {
				t.Errorf("%v does not say where", err)
			}
			return
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseValues("again.yaml", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if one, err := json.Marshal(values); err == nil {
			if two, err := json.Marshal(again); err != nil || len(values) > 0 && string(one) != string(two) {
				t.Errorf("%s is read again as %s (%v)", one, two, err)
			}
		}
	})
}

// With any values.schema.json and any values: the schema is either refused or validates the values, always with the same result, and each
// finding has its place.
func FuzzValuesSchema(f *testing.F) {
	for _, schema := range chartFiles(f, "values.schema.json") {
		f.Add(schema, []byte("kubernetesVersion: v1.36.3\nregion: eu\npools: [{name: a, replicas: -1, sise: x}, {name: a}]\n"))
	}
	for _, schema := range []string{
		`{"$ref": "https://example.com/schema.json"}`, `{"$ref": "file:///etc/passwd"}`, `{"$ref": "#"}`,
		`{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}`,
		`{"properties": {"a": {"pattern": "("}}}`, `{"anyOf": [{"required": ["b"]}, {"not": {}}]}`, `true`, `[]`, `{"type": "objekt"}`,
		`{"properties": {"a": {"multipleOf": 0.1}}}`,
		`{"$schema": "http://json-schema.org/draft-04/schema#", "additionalProperties": false}`,
		`{"items": [{"type": "string"}], "propertyNames": {"maxLength": 1}}`,
	} {
		f.Add([]byte(schema), []byte("a: [b, {c: 1.5}]\nlonger: ~\n"))
	}
	f.Fuzz(func(t *testing.T, schema, text []byte) {
		document, err := decodeMap(schema)
		if err != nil || document == nil {
			return
		}
		var schemas valuesschema.Schemas
		compiled, err := schemas.Compile(document)
		if err != nil {
			return
		}
		if again, err := schemas.Compile(document); err != nil || again != compiled {
			t.Errorf("compiled again it is another one: %v", err)
		}
		values, err := decodeMap(text)
		if err != nil {
			return
		}
		failed, err := compiled.Judge(values)
		if err != nil {
			return
		}
		if again, err := compiled.Judge(values); err != nil || (failed == nil) != (again == nil) {
			t.Errorf("judged again it is %v, %v, not %v", again, err, failed)
		}
		if failed == nil {
			return
		}
		var release yaml.Node
		if err := release.Encode(map[string]any{"spec": map[string]any{"values": values}}); err != nil {
			t.Fatal(err)
		}
		release.Line = 1 // what is made here stands nowhere
		findings := ValueFindings("cluster.yaml", &release, "any", document, failed)
		if len(findings) == 0 {
			t.Fatalf("no finding says %v", failed)
		}
		for _, found := range findings {
			if found.File != "cluster.yaml" || found.Summary == "" || reflect.DeepEqual(found, diag.Finding{}) {
				t.Errorf("%+v says nothing", found)
			}
		}
	})
}
