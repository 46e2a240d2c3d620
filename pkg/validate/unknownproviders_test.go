package validate

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A provider that init and provider add refuse is the same error here, with its place.
func TestUnknownProvider(t *testing.T) {
	files := fleet(t)
	files["fleet.yaml"] = strings.Replace(files["fleet.yaml"], "      version: v1.14.2\n", "      version: v1.14.2\n    - name: awss\n", 1)
	f := only(t, validate(t, files, knownKinds(t)).Findings, RuleValue)
	line := 1 + strings.Count(files["fleet.yaml"][:strings.Index(files["fleet.yaml"], "awss")], "\n")
	if f.Severity != diag.SeverityError || f.File != "fleet.yaml" || f.Line != line || f.Column != 7 ||
		!strings.Contains(f.Summary, "awss") || !strings.Contains(f.Hint, "did you mean aws?") {
		t.Errorf("%s: %s, line %d, column %d (%s)", f.Severity, f, f.Line, f.Column, f.Hint)
	}
	files["fleet.yaml"] = strings.Replace(files["fleet.yaml"], "name: awss\n",
		"name: awss\n      url: https://example.com/v1.0.0/infrastructure-components.yaml\n      version: v1.0.0\n", 1)
	report(t, validate(t, files, knownKinds(t)).Findings)
}
