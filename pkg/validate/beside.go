package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// lacksBeside reports that something which an object of Kubernetes' own kinds names in a namespace is not there; nil where it may well be
// there, although the repo does not have it.
func (s *resolver) lacksBeside(p place, o *object, ref reference, where, nearest string) *diag.Finding {
	if ref.namespace == "" && !withoutNamespace[ref.kind] {
		return nil
	}
	if (o.Template != "" || !s.knows(p, ref.namespace, ref.kind)) &&
		(!isSlip(ref.name, nearest) || s.mayBeOfChart(space{p, ref.namespace}, ref.name)) {
		return nil
	}
	f := o.missing(ref, where, nearest, false)
	return &f
}

// isSlip tells whether a name is another one but for a letter that is wrong, missing, too much, or swapped with the next. Names that differ
// in a digit, or in a word of one letter, are those of different things.
func isSlip(name, meant string) bool {
	if isHashed(name, meant) {
		return true
	}
	a, b := []rune(name), []rune(meant)
	if len(a) < 3 || len(b) < 3 || name == meant {
		return false
	}
	before, after := '-', '-'
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		before, a, b = a[0], a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		after, a, b = a[len(a)-1], a[:len(a)-1], b[:len(b)-1]
	}
	isLetter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	if slices.ContainsFunc(slices.Concat(a, b), unicode.IsDigit) || !isLetter(before) && !isLetter(after) {
		return false
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// checkPort reports a port that the Service which a reference leads to does not have.
func (s *resolver) checkPort(p place, o *object, ref reference) diag.Findings {
	if ref.port == "" {
		return nil
	}
	for _, service := range s.surround().services[space{p, ref.namespace}] {
		if service.Name != ref.name || strings.Contains(string(service.JSON), "${") {
			continue
		}
		var content map[string]any
		_ = kjson.Unmarshal(service.JSON, &content) // which its schema says
		var there []string
		for _, port := range mapping.Fields(content).List("spec", "ports") {
			number := fmt.Sprint(port["port"])
			if port.Text("name") == ref.port || number == ref.port {
				return nil
			}
			if name := port.Text("name"); name != "" {
				number = name + " (" + number + ")"
			}
			there = append(there, number)
		}
		if len(there) == 0 || mapping.Fields(content).Text("spec", "type") == "ExternalName" {
			return nil
		}
		return diag.Findings{o.at(ref.portField, RuleMissingObject,
			fmt.Sprintf("the Service %.80s has no port %.40s", ref.name, ref.port), "it has "+strings.Join(there[:min(len(there), 10)], ", "))}
	}
	return nil
}

// checkSelections reports selectors that find nothing, and Services for a port that no pod has.
func (s *resolver) checkSelections(o *object) (out diag.Findings) {
	for i := range o.selects {
		sel := &o.selects[i]
		for _, p := range o.places() {
			if f := s.checkSelection(p, o, sel); f != nil {
				out = append(out, f...)
				break
			}
		}
	}
	return out
}

func (s *resolver) checkSelection(p place, o *object, sel *selection) diag.Findings {
	all := s.surround().labelled[space{p, o.Namespace}]
	var found, near []labelled
	for _, l := range all[sel.what] {
		switch {
		case l.open && (sel.what != selectsClusters || !sel.finds(l)):
			return nil
		case sel.finds(l):
			found = append(found, l)
		case sel.what == selectsMachines && sel.selector.Matches(l.labels) && !(isCluster(all, sel.cluster) && isCluster(all, l.cluster)):
			return nil // the name of a cluster is wrong, which is reported there
		case sel.slips(l) != "":
			near = append(near, l)
		}
	}
	if len(found) > 0 {
		return s.checkTargetPorts(o, sel, found)
	}
	if !s.selectsWhatIsKnown(p, o, sel, all) && len(near) == 0 {
		return nil
	}
	summary := fmt.Sprintf("it selects nothing: no %s of namespace %.80s has these labels", sel.what, o.Namespace)
	hint := "compare it with their labels" + sayInComment + RuleIdleSelector + " reason"
	if len(near) > 0 {
		hint = "did you mean " + sel.slips(near[0]) + "?"
	}
	return diag.Findings{o.at(sel.field, RuleIdleSelector, summary, hint)}
}

// isCluster tells whether a Cluster of that name is among what selectors may find.
func isCluster(all map[string][]labelled, name string) bool {
	return slices.ContainsFunc(all[selectsClusters], func(l labelled) bool { return l.cluster == name })
}

// selectsWhatIsKnown tells whether all that a selector may find is in the repo. A chart may have a selector for what its values leave out,
// and a ClusterResourceSet may be for clusters that come later.
func (s *resolver) selectsWhatIsKnown(p place, o *object, sel *selection, all map[string][]labelled) bool {
	if o.Template != "" || sel.what == selectsClusters {
		return false
	}
	if sel.what == selectsPods {
		return s.knows(p, o.Namespace, "Pod") && s.knows(p, o.Namespace, "Deployment")
	}
	// Controllers make none of these of other objects, but for a Cluster with a topology.
	// Of a cluster without any, another finding tells.
	ofCluster := func(l labelled) bool { return l.cluster != "" && l.cluster == sel.cluster }
	return slices.ContainsFunc(all[sel.what], ofCluster) && !s.strange[p] && len(s.surround().releases[space{p, o.Namespace}]) == 0 &&
		!slices.ContainsFunc(all[selectsClusters], func(l labelled) bool { return l.open && sel.what == selectsMachines })
}

// slips is the label that a selector asks for in vain, as it is on something that has all others; "" where more is wrong, or something else
// is meant.
func (s *selection) slips(l labelled) string {
	meant := ""
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		want, has := s.wanted[name], l.labels[name]
		switch {
		case want == has && has != "":
		case meant != "" || !isSlip(want, has):
			return ""
		default:
			meant = name + ": " + has
		}
	}
	return meant
}

// checkTargetPorts reports named ports that no container of the selected pods has.
func (s *resolver) checkTargetPorts(o *object, sel *selection, found []labelled) (out diag.Findings) {
	var there []string
	for _, l := range found {
		there = append(there, l.ports...)
	}
	for _, field := range slices.Sorted(maps.Keys(sel.ports)) {
		name := sel.ports[field]
		if slices.Contains(there, name) {
			continue
		}
		hint := "name it under ports of the container, or write its number"
		if nearest := diag.Nearest(name, there); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		out = append(out, o.at(field, RuleMissingObject, "no container of the pods has a port called "+strconv.Quote(name), hint))
	}
	return out
}
