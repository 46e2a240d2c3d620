package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// The committed files equal the generated ones.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	files, err := outputs()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale, run `go generate ./pkg/api/v1alpha1` (-want +got)\n%s", path, diff)
		}
	}
}

// Every field and every type has a comment.
func TestDescriptions(t *testing.T) {
	t.Chdir("../..")
	schema, err := reflectSchema()
	if err != nil {
		t.Fatal(err)
	}
	for name, definition := range schema.Definitions {
		if definition.Description == "" {
			t.Errorf("type %s has no comment", name)
		}
		for field := definition.Properties.Oldest(); field != nil; field = field.Next() {
			if field.Value.Description == "" {
				t.Errorf("field %s of %s has no comment", field.Key, name)
			}
		}
	}
}

// The schema accepts every valid file, and refuses every invalid file whose mistake a schema can express.
func TestSchemaAgreesWithDecoder(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("fleet.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := validator.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := validator.NewCompiler()
	if err := compiler.AddResource(schemaID, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(schemaID)
	if err != nil {
		t.Fatal(err)
	}
	// a schema cannot express these mistakes: values, uniqueness, the text of the file itself
	beyond := map[string]bool{
		"invalid-duplicates.yaml": true, "invalid-documents.yaml": true, "invalid-syntax.yaml": true, "invalid-folders.yaml": true,
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if beyond[name] || strings.Contains(name, "alias") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var fleet any
		if err := yaml.Unmarshal(content, &fleet); err != nil {
			continue // not even YAML for a general reader
		}
		if err := schema.Validate(fleet); (err == nil) != strings.HasPrefix(name, "valid-") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
