package v1alpha1

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMarshalRoundTrip(t *testing.T) {
	for _, file := range testFiles(t, "valid-*.yaml") {
		want, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, want)
		SetDefaults(want, Defaults{FluxVersion: "v2.9.5", CAPIVersion: "v1.14.2"})
		roundTrip(t, want)
	}
}

func roundTrip(t *testing.T, want *Fleet) {
	t.Helper()
	text, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(FileName, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(want, got, sameFleet, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMarshalText(t *testing.T) {
	minimal, err := Load("testdata/valid-minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Marshal(minimal)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/marshal-minimal.golden"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(mustRead(t, golden)), string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The examples in the comments of a new file decode once they are uncommented.
func TestMarshalExamples(t *testing.T) {
	for _, s := range sections {
		if s.example == "" {
			continue
		}
		text := "apiVersion: " + APIVersion + "\nkind: " + Kind + "\nmetadata: {name: x}\nspec:\n  managementClusters: [{name: m}]\n  " +
			strings.ReplaceAll(s.example, "\n", "\n  ") + "\n"
		if _, err := Decode(FileName, []byte(text)); err != nil {
			t.Errorf("%s: %v", s.field, err)
		}
	}
}

// Every field of spec has its section, in the order of the type.
func TestMarshalHasAllSections(t *testing.T) {
	_, names := fieldsOf(reflect.TypeFor[FleetSpec]())
	var have []string
	for _, s := range sections {
		have = append(have, s.field)
	}
	if diff := cmp.Diff(names, have); diff != "" {
		t.Error(diff)
	}
}
