package ui

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// One finding replaces ninety equal findings. A finding that occurs only a few times, or that differs, stays.
func TestFindingsAreSummedUp(t *testing.T) {
	var findings diag.Findings
	for i := range 90 {
		findings = append(findings, diag.Finding{
			Severity: diag.SeverityError, Rule: "unknown-field", File: fmt.Sprintf("c%02d.yaml", i), Line: 3,
			Summary: fmt.Sprintf("Cluster c%02d: spec.x: no such field", i),
			Gist:    "Cluster: spec.x: no such field", Hint: "take it out",
		})
	}
	for i := range 3 {
		findings = append(findings, diag.Finding{
			Severity: diag.SeverityWarning, Rule: "unknown-folder", File: fmt.Sprintf("d%d", i),
			Summary: "it is not one of the layout",
		})
	}
	findings = append(findings, diag.Finding{
		Severity: diag.SeverityWarning, Rule: "unknown-field", File: "z.yaml",
		Summary: "Cluster z: spec.x: no such field", Gist: "Cluster: spec.x: no such field",
	})
	var out bytes.Buffer
	if err := PrintFindings(Streams{}, &out, findings); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"c00.yaml:3: error: Cluster c00: spec.x: no such field [unknown-field]\n    take it out\n    and in 89 more places, such as " +
			"c01.yaml:3, c02.yaml:3, c03.yaml:3: -o json has all of them\n",
		"d0: warning:", "d1: warning:", "d2: warning:", "z.yaml: warning:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\n"); n != 7 {
		t.Errorf("%d lines in\n%s", n, text)
	}
}
