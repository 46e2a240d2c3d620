package render

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// claim names an object of one cluster. target is "" for the management cluster.
type claim struct {
	mgmt, target, group, kind, namespace, name string
}

// conflicts reports objects that two Flux objects make in one cluster. Each undoes the changes of the other, and deleting one of them
// deletes the object. Both stay in the result. Two declarations in one Kustomization are reported when it is built.
func conflicts(all []*Object) diag.Findings {
	first := make(map[claim]*Object, len(all))
	var out diag.Findings
	for _, o := range all {
		group, _, versioned := strings.Cut(o.APIVersion, "/")
		if !versioned {
			group = ""
		}
		targets := o.Targets
		if len(targets) == 0 {
			targets = []string{""}
		}
		for _, target := range targets {
			key := claim{o.ManagementCluster, target, group, o.Kind, o.Namespace, o.Name}
			if other := first[key]; other != nil {
				out = append(out, conflict(o, other, key))
				break
			}
			first[key] = o
		}
	}
	return out
}

// conflict is the finding about two objects that are the same object in a cluster.
func conflict(o, other *Object, at claim) diag.Finding {
	f := diag.Finding{Severity: diag.SeverityWarning, Rule: RuleConflict, File: o.Source.File, Line: o.Source.Line}
	cluster := "management cluster " + at.mgmt
	if at.target != "" {
		cluster = "cluster " + at.target
	}
	if other == o { // the same document, applied twice
		f.Summary, f.Hint = fmt.Sprintf("%s: two Flux Kustomizations apply it to the %s", o.ID(), cluster), "apply its folder once"
		return f
	}
	where := ""
	if other.Source.File != "" {
		where = fmt.Sprintf(", in %s, line %d", other.Source.File, other.Source.Line)
	}
	f.Summary = fmt.Sprintf("%s: %s makes it on the %s, and so does %s%s", o.ID(), o.Owner, cluster, other.Owner, where)
	f.Hint = "keep one of them, or give one of them another name or namespace"
	return f
}
