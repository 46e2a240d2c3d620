package adopt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The error about what could not be followed names a few of the things that may hide clusters, and no doubts.
func TestHiding(t *testing.T) {
	r := &Report{Problems: diag.Findings{{Severity: diag.SeverityWarning, Summary: "a doubt"}}}
	if err := r.hiding(); err != nil {
		t.Errorf("doubts alone: %v", err)
	}
	for i := range mostProblems + 2 {
		r.Problems = append(r.Problems,
			diag.Finding{Severity: diag.SeverityError, File: "a.yaml", Line: i + 1, Summary: fmt.Sprintf("wrong %d", i)})
	}
	text := r.hiding().Error()
	if strings.Contains(text, "doubt") || strings.Count(text, "wrong") != mostProblems || !strings.Contains(text, "and 2 more") {
		t.Errorf("%q", text)
	}
	_, err := r.fleet(Options{})
	if err == nil || strings.Count(err.Error(), "wrong") != mostProblems || diag.Hint(err) == "" {
		t.Errorf("%v (%s)", err, diag.Hint(err))
	}
}
