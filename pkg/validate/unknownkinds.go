package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const unknownKindHint = "put its CRD into the repo where it is installed from there, or give --crds with a folder that has it"

// unknownKinds reports each kind without a schema once.
func unknownKinds(s *schemas, all []*object) diag.Findings {
	var out diag.Findings
	seen := map[kschema.GroupVersionKind]bool{}
	for _, o := range all {
		if gvk := o.gvk(); !seen[gvk] && o.isUnknown(s) {
			seen[gvk] = true
			f := o.at("kind", RuleUnknownKind, fmt.Sprintf("no schema is known for %s %s: its objects are not checked", o.APIVersion, o.Kind),
				unknownKindHint)
			f.Summary = strings.TrimPrefix(f.Summary, o.Kind+" "+o.Name+": kind: ")
			out = append(out, f)
		}
	}
	return out
}

// isUnknown tells whether the schema of the object's kind is unknown, and no other finding says so.
func (o *object) isUnknown(s *schemas) bool {
	return o.unknown && !slices.ContainsFunc(s.missing, func(p v1alpha1.LockedComponent) bool { return mayBeOf(p, o.gvk()) })
}

// unknownKinds reports the kinds without a schema in a whole repo. A repo with its own layout may have a hundred of them, which then get
// one finding together.
func (r *run) unknownKinds(s *schemas, all []*object) diag.Findings {
	const few, most = 3, 20
	out := unknownKinds(s, all)
	if len(out) <= few || slices.ContainsFunc(out, func(f diag.Finding) bool { return !r.saidTogether(f) }) {
		return out
	}
	var names []string
	objects := 0
	for _, o := range all {
		if o.isUnknown(s) {
			objects++
			names = append(names, o.APIVersion+" "+o.Kind)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	listed := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		listed += fmt.Sprintf(" and %d more", len(names)-most)
	}
	f := slices.MinFunc(out, func(a, b diag.Finding) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	f.Summary = fmt.Sprintf("no schema is known for kinds (%d), so their objects (%d) are not checked: %s", len(names), objects, listed)
	f.Hint = "put their CRDs into the repo where they are installed from there, or give --crds with a folder that has them"
	return diag.Findings{f}
}
