//go:build integration

package schema

import (
	"os"
	"testing"

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
	all := goldens(t)
	for _, g := range all {
		o := g.object
		problems, err := s.Check(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v: %v", g.file, o["kind"], err)
		}
		for _, p := range problems {
			t.Errorf("%s: %v: %s %s: %s", g.file, o["kind"], p.Type, p.Path, p.Summary)
		}
		o["replicaz"] = int64(3)
		if problems, _ := s.Check(t.Context(), o); len(problems) != 1 || problems[0].Type != Unknown || problems[0].Path != "replicaz" {
			t.Errorf("%s: %v with a field too many: %v", g.file, o["kind"], problems)
		}
	}
	t.Logf("%d objects", len(all))
}
