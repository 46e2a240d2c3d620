package render

import (
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// leftOut replaces the path of a resource that is not built. No path is empty.
const leftOut = ""

// leaveOut leaves out a resource that kustomize would fetch, because this package fetches nothing. In a repo with its own layout, the rest
// of the folder can still be checked.
func (c *closure) leaveOut(name *string, at place, field string) {
	c.left = append(c.left, diag.Finding{
		Severity: diag.SeverityWarning, Rule: RuleRemote, File: at.file, Line: at.line, Column: at.column,
		Summary: fmt.Sprintf("%s: %.100q would have to be fetched from elsewhere: what is in it is not checked", field, *name),
		Hint:    remoteHint,
	})
	*name = leftOut
}

// excuse returns the findings of a build from which something was left out. The build may have failed just because of that, such as a patch
// whose object was left out, so the failure is no error.
func (c *closure) excuse(findings diag.Findings) diag.Findings {
	if len(c.left) == 0 {
		return findings
	}
	out := slices.Clone(c.left)
	for _, f := range findings {
		if f.Severity == diag.SeverityError && f.Rule == RuleKustomize {
			f.Severity, f.Rule = diag.SeverityWarning, RuleIncomplete
			f.Hint = "look for the reason in what would have to be fetched first: it is left out here"
		}
		if f.Rule == RulePatch {
			continue // it may be for an object that is left out
		}
		out = append(out, f)
	}
	return out
}
