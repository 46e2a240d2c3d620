package validate

import (
	"fmt"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// misfit reports a reference whose kind cannot have the role of the field, whether or not the object exists.
func (o *object) misfit(ref reference) diag.Findings {
	reason := ref.role.misfit(ref.group, ref.kind)
	if reason == "" {
		return nil
	}
	field := strings.TrimSuffix(ref.field, ".name")
	return diag.Findings{o.at(field+".kind", RuleClusterRef, fmt.Sprintf("%.80s cannot be what %s is for: %s", ref.kind, field, reason), "")}
}

// explain adds to the finding about a missing object that an object of this name exists with another kind or in another namespace.
func (s *resolver) explain(f *diag.Finding, p place, o *object, ref reference) {
	if s.opaque[p] && ref.kind == "ClusterClass" || ref.doubtful { // a ClusterClass is often shared between repos
		f.Severity = diag.SeverityWarning
	}
	if f.Hint != "" {
		return
	}
	for _, other := range s.called(p, ref.name) {
		group, _, _ := strings.Cut(other.APIVersion, "/")
		switch {
		case other.Kind == ref.kind && other.Namespace != ref.namespace:
			f.Hint = fmt.Sprintf("there is one in namespace %.80s: Cluster API looks in that of the object itself", other.Namespace)
			return
		case other.Kind == ref.kind:
			f.Hint = fmt.Sprintf("there is one of the API group %.80s, and not of %.80s", group, ref.group)
			for _, field := range []string{"apiGroup", "apiVersion"} {
				if o.says(ref.field, field) {
					at := locate(o.document.node, strings.TrimSuffix(ref.field, "name")+field)
					f.Line, f.Column = at.Line, at.Column
				}
			}
			return
		case other.Namespace == ref.namespace && strings.HasSuffix(group, clusterGroup) && group == ref.group:
			f.Hint = fmt.Sprintf("there is a %.80s of that name", other.Kind)
		}
	}
	if f.Hint == "" && ref.kind == "Cluster" {
		f.Hint = "declare the Cluster beside it, or remove this"
	}
}

// says tells whether the document that declares the object has a field called field beside the one called name.
func (o *object) says(name, field string) bool {
	if o.document == nil || o.Template != "" {
		return false
	}
	beside := strings.TrimSuffix(name, "name") + field
	return locate(o.document.node, beside).Value == field
}

// called returns the objects of a place that have a name.
func (s *resolver) called(p place, name string) []*object {
	if s.named == nil {
		s.named = map[known][]*object{}
		for _, o := range s.applied {
			for _, p := range o.places() {
				k := known{place: p, name: o.Name}
				s.named[k] = append(s.named[k], o)
			}
		}
	}
	return s.named[known{place: p, name: name}]
}

// inSystem tells whether a Secret of a provider is in a namespace called like those of providers, because a provider may run in another
// namespace than its default one.
func (s *resolver) inSystem(p place, ref reference) bool {
	return slices.ContainsFunc(s.called(p, ref.name), func(o *object) bool {
		return slices.ContainsFunc(slices.Concat(makes(o), o.made), func(k known) bool { return k.kind == "Secret" }) &&
			strings.Contains(o.Namespace, "system")
	})
}

// leadsTo checks the object that a reference leads to. A ClusterClass must have the classes that a Cluster uses, and an object must not
// have a second owner.
func (s *resolver) leadsTo(p place, o *object, ref reference) diag.Findings {
	var out diag.Findings
	if ref.role == infraCluster || ref.role == controlPlane || ref.role == infraObject {
		k := ref.in(p)
		first := s.owners[k]
		if first == nil {
			s.owners[k] = o
		} else if first.Kind != o.Kind || first.Name != o.Name || first.Namespace != o.Namespace {
			out = append(out, o.at(ref.field, RuleClusterRef,
				fmt.Sprintf("the %s %.120s is that of the %s %.80s, in %s, line %d", ref.kind, ref.name, first.Kind, first.Name,
					first.Source.File, first.Source.Line),
				"give each its own: Cluster API lets nothing have two owners"))
		}
	}
	if len(ref.workers) == 0 {
		return out
	}
	for _, class := range s.called(p, ref.name) {
		if class.Kind == "ClusterClass" && class.Namespace == ref.namespace {
			out = append(out, o.checkWorkers(ref, class)...)
		}
	}
	return out
}

// checkWorkers reports references to classes of workers that the ClusterClass does not have.
func (o *object) checkWorkers(ref reference, class *object) diag.Findings {
	var content map[string]any
	_ = kjson.Unmarshal(class.JSON, &content) // its schema reports wrong types
	var out diag.Findings
	for _, worker := range ref.workers {
		var there []string
		for _, has := range mapping.Fields(content).List("spec", "workers", worker.list) {
			there = append(there, has.Text("class"))
		}
		if slices.Contains(there, worker.class) || slices.ContainsFunc(there, func(c string) bool { return strings.Contains(c, "${") }) {
			continue
		}
		hint := "it has none"
		if len(there) > 0 {
			hint = "it has " + strings.Join(there[:min(len(there), 10)], ", ")
		}
		out = append(out, o.at(worker.field, RuleClusterRef,
			fmt.Sprintf("the ClusterClass %.80s has no class %.80s of %s", class.Name, worker.class, worker.list), hint))
	}
	return out
}
