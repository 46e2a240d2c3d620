package refused

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// clusterClass judges the variables and patches of a ClusterClass.
func clusterClass(p part) {
	spec := p.in("spec")
	class := classPatches{spec: spec}
	for _, variable := range spec.each("variables") {
		name, ok := variable.known("name")
		switch {
		case !ok:
			class.open = true
		case name == "builtin":
			variable.refuse("name", "Cluster API has variables of this name itself", "give it another name")
		case strings.Contains(name, "."):
			variable.refuse("name", fmt.Sprintf("%.80q has a dot, and a patch would take what follows for a field", name), "give it another name")
		case slices.Contains(class.variables, name):
			variable.refuse("name", fmt.Sprintf("there are two variables %.80s", name), "keep one of the two")
		}
		class.variables = append(class.variables, name)
	}
	var names []string
	for _, patch := range spec.each("patches") {
		if name, ok := patch.known("name"); ok && slices.Contains(names, name) {
			patch.refuse("name", fmt.Sprintf("there are two patches %.80s", name), "give each a name of its own")
		}
		names = append(names, patch.word("name"))
		patch.parses("enabledIf")
		patch.together("external", "definitions")
		if !patch.given("external") && !patch.has("definitions") {
			patch.refuse("", "it changes nothing", "write definitions, or external for a runtime extension")
		}
		class.open = class.open || patch.in("external").has("discoverVariablesExtension")
	}
	for _, patch := range spec.each("patches") {
		for _, definition := range patch.each("definitions") {
			class.selects(definition.in("selector"))
			for _, change := range definition.each("jsonPatches") {
				class.changes(change)
			}
		}
	}
}

// classPatches judges the selectors and changes of the patches of one class.
type classPatches struct {
	spec      part
	variables []string
	open      bool // a runtime extension may declare other variables
}

// selects reports a selector that selects no template of the class.
func (c classPatches) selects(selector part) {
	const hint = "name the kind of a template of this class, and where the class uses it"
	resources := selector.in("matchResources")
	plane := c.spec.in("controlPlane")
	if !slices.ContainsFunc([]string{"controlPlane", "infrastructureCluster", "machineDeploymentClass", "machinePoolClass"}, resources.has) {
		if len(selector.fields) > 0 {
			selector.refuse("matchResources", "it selects no part of the class", hint)
		}
		return
	}
	if c.selectsNoKind(selector) {
		return
	}
	if resources.has("controlPlane") && !isOneOf(selector, append(templates(plane), templates(plane.in("machineInfrastructure"))...)) {
		resources.refuse("controlPlane", "the control plane of this class has no such template", hint)
	}
	if resources.has("infrastructureCluster") && !isOneOf(selector, templates(c.spec.in("infrastructure"))) {
		resources.refuse("infrastructureCluster", "the infrastructure of this class is no such template", hint)
	}
	for list, field := range map[string]string{"machineDeployments": "machineDeploymentClass", "machinePools": "machinePoolClass"} {
		names, _ := resources.in(field).fields["names"].([]any)
		for i, name := range names {
			if name, ok := name.(string); ok && !strings.Contains(name, "${") && !c.hasWorkers(list, name, selector) {
				resources.in(field).refuse(fmt.Sprintf("names[%d]", i),
					fmt.Sprintf("no class %.80s of %s has such a template", name, list), hint)
			}
		}
	}
}

// selectsNoKind reports a selector of a kind or a version that no template of the class has.
func (c classPatches) selectsNoKind(selector part) bool {
	plane, workers := c.spec.in("controlPlane"), c.spec.in("workers")
	all := slices.Concat(templates(plane), templates(plane.in("machineInfrastructure")), templates(c.spec.in("infrastructure")))
	for _, class := range slices.Concat(workers.each("machineDeployments"), workers.each("machinePools")) {
		for _, of := range []part{class, class.in("template")} {
			all = slices.Concat(all, templates(of.in("bootstrap")), templates(of.in("infrastructure")))
		}
	}
	kind, ok := selector.known("kind")
	if !ok || isOneOf(selector, all) {
		return false
	}
	var kinds []string
	for _, ref := range all {
		if ref.word("kind") == kind {
			selector.refuse("apiVersion", fmt.Sprintf("the templates %.60s of this class are not of %.80s", kind, selector.word("apiVersion")),
				"write "+ref.word("apiVersion"))
			return true
		}
		if ref.has("kind") {
			kinds = append(kinds, ref.word("kind"))
		}
	}
	slices.Sort(kinds)
	selector.refuse("kind", fmt.Sprintf("no template of this class is a %.80s", kind), "it has "+strings.Join(slices.Compact(kinds), ", "))
	return true
}

// hasWorkers tells whether a class of workers called name, which may be a pattern such as *-gpu, has a template of the selector's kind.
func (c classPatches) hasWorkers(list, name string, selector part) bool {
	return slices.ContainsFunc(c.spec.in("workers").each(list), func(workers part) bool {
		class := workers.word("class")
		named := name == class || name == "*" ||
			strings.HasPrefix(name, "*") && strings.HasSuffix(class, name[1:]) ||
			strings.HasSuffix(name, "*") && strings.HasPrefix(class, name[:len(name)-1])
		if strings.Contains(class, "${") {
			return true
		}
		made := append(templates(workers.in("bootstrap")), templates(workers.in("infrastructure"))...)
		made = append(made, templates(workers.in("template").in("bootstrap"))...)
		return named && isOneOf(selector, append(made, templates(workers.in("template").in("infrastructure"))...))
	})
}

// templates returns the references to templates in a part of a class, in both versions of the API.
func templates(p part) []part { return []part{p.in("ref"), p.in("templateRef")} }

// isOneOf tells whether one of the references has the kind and version of a selector. A text with a variable may have any.
func isOneOf(selector part, references []part) bool {
	wanted := selector.word("apiVersion") + " " + selector.word("kind")
	return slices.ContainsFunc(references, func(ref part) bool {
		has := ref.word("apiVersion") + " " + ref.word("kind")
		return has == wanted || strings.Contains(has+wanted, "${")
	})
}

// changes judges one change of a template.
func (c classPatches) changes(change part) {
	op := change.word("op")
	if path, ok := change.known("path"); ok {
		if !strings.HasPrefix(path, "/spec") {
			change.refuse("path", fmt.Sprintf("%.80q does not begin with /spec, and a patch changes nothing else", path),
				"write a path below /spec")
		}
		for step := range strings.SplitSeq(path, "/") {
			switch index, err := strconv.Atoi(step); {
			case err != nil:
			case op != "add":
				change.refuse("path", "with "+op+" there is no number of an item in it", "replace the whole list")
			case index != 0:
				change.refuse("path", "an item can only be added as the first one, 0, or as the last one, -", "write 0 or -")
			}
		}
	}
	if op != "add" && op != "replace" {
		return
	}
	_, value := change.fields["value"]
	from := change.in("valueFrom")
	switch {
	case value && change.has("valueFrom"):
		change.refuse("valueFrom", "it cannot be set together with value", "remove one of the two")
	case !value && !change.has("valueFrom"):
		change.refuse("", "it has no value", "write value, or valueFrom")
	}
	from.together("variable", "template")
	from.parses("template")
	name, ok := from.known("variable")
	name, _, _ = strings.Cut(name, "[")
	name, _, _ = strings.Cut(name, ".")
	if ok && name != "builtin" && !c.open && !slices.Contains(c.variables, name) {
		from.refuse("variable", fmt.Sprintf("this class has no variable %.80s", name), "name one of spec.variables")
	}
}

// parses reports a template that cannot be parsed. It parses with the functions that Cluster API uses.
func (p part) parses(field string) {
	text, ok := p.known(field)
	if !ok {
		return
	}
	if _, err := template.New(field).Funcs(sprig.HermeticTxtFuncMap()).Parse(text); err != nil {
		p.refuse(field, fmt.Sprintf("it cannot be read: %.200v", err), "correct the template")
	}
}
