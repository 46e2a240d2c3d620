//go:build integration

package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/templates/templatestest"
)

// What the charts render, a real API server takes (see templates): it has to pass here as well, and with a field too many it must not.
func TestRealCRDs(t *testing.T) {
	s := NewSet()
	for _, file := range templatestest.CRDFiles(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(file, content); err != nil {
			t.Fatal(err)
		}
	}
	goldens, err := filepath.Glob("../../../templates/testdata/golden/*.yaml")
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	checked := 0
	for _, golden := range goldens {
		content, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range Documents(content) {
			encoded, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(encoded, []byte("null")) {
				continue
			}
			checked++
			o := fromJSON(t, encoded)
			problems, err := s.Check(t.Context(), o)
			if err != nil {
				t.Errorf("%s: %v: %v", golden, o["kind"], err)
			}
			for _, p := range problems {
				t.Errorf("%s: %v: %s %s: %s", golden, o["kind"], p.Type, p.Path, p.Summary)
			}
			o["replicaz"] = int64(3)
			if problems, _ := s.Check(t.Context(), o); len(problems) != 1 || problems[0].Type != Unknown || problems[0].Path != "replicaz" {
				t.Errorf("%s: %v with a field too many: %v", golden, o["kind"], problems)
			}
		}
	}
	t.Logf("%d objects", checked)
}
