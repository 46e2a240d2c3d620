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

// lacksBeside reports that an object refers to a missing object in a namespace. It returns nil if the missing object may well exist in the
// cluster although the repo does not have it.
func (s *resolver) lacksBeside(p place, o *object, ref reference, where, nearest string) *diag.Finding {
	if ref.namespace == "" && !withoutNamespace[ref.kind] {
		return nil
	}
	if f := s.meantRole(p, o, ref, where); f != nil {
		return f
	}
	knows := s.knows(p, ref.namespace, ref.kind)
	if ref.declared {
		knows = !s.strange[p] && !s.run.isForeign() && ref.namespace != ""
	}
	knows = knows && !ref.guess
	if (o.Template != "" || !knows) &&
		(!isSlip(ref.name, nearest) || s.mayBeOfChart(space{p, ref.namespace}, ref.name)) {
		return nil
	}
	f := o.missing(ref, where, nearest, false)
	return &f
}

// isSlip tells whether name differs from meant by one typing mistake: a letter is wrong, missing, additional, or swapped with the next
// letter. It returns false for names that differ in a digit, or in a word of one letter, because people name different objects like this.
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

// checkPort reports a reference to a port that the Service does not have.
func (s *resolver) checkPort(p place, o *object, ref reference) diag.Findings {
	if ref.port == "" {
		return nil
	}
	for _, service := range s.surround().services[space{p, ref.namespace}] {
		if service.Name != ref.name || strings.Contains(string(service.JSON), "${") {
			continue
		}
		var content map[string]any
		_ = kjson.Unmarshal(service.JSON, &content) // its schema reports wrong types
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

// checkSelections reports selectors that find nothing, and Services with a target port that no pod has.
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
			return nil // the name of the cluster is wrong, which is a finding of its own
		case sel.slips(l) != "":
			near = append(near, l)
		}
	}
	if slices.ContainsFunc(s.run.gaps(), func(g *gap) bool { return g.mayMatch(p, o.Namespace, sel.wanted) }) {
		return nil
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

// isCluster tells whether the objects that selectors may find include a Cluster of that name.
func isCluster(all map[string][]labelled, name string) bool {
	return slices.ContainsFunc(all[selectsClusters], func(l labelled) bool { return l.cluster == name })
}

// selectsWhatIsKnown tells whether the repo has all objects that a selector may find. It is false for a selector of a chart, which may be
// for objects that the chart's values leave out, and for a ClusterResourceSet, which may be for later clusters.
func (s *resolver) selectsWhatIsKnown(p place, o *object, sel *selection, all map[string][]labelled) bool {
	if o.Template != "" || sel.what == selectsClusters {
		return false
	}
	if sel.what == selectsPods {
		return s.knows(p, o.Namespace, "Pod") && s.knows(p, o.Namespace, "Deployment")
	}
	// No controller makes machines and sets of machines from other objects, except from a Cluster with a topology. If the cluster has no
	// machines at all, another finding reports that.
	ofCluster := func(l labelled) bool { return l.cluster != "" && l.cluster == sel.cluster }
	return slices.ContainsFunc(all[sel.what], ofCluster) && !s.strange[p] && len(s.surround().releases[space{p, o.Namespace}]) == 0 &&
		!slices.ContainsFunc(all[selectsClusters], func(l labelled) bool { return l.open && sel.what == selectsMachines })
}

// slips returns the label of l that a selector means but spells wrongly, if all other labels of the selector are as on l. It returns "" if
// the selector differs in more labels, or if the value is not a slip.
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

// checkTargetPorts reports named target ports that no container of the selected pods has.
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
