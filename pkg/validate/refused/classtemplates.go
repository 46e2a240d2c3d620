package refused

import (
	"fmt"
	"slices"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// templateVariables reports variables in the templates of a ClusterClass that the class does not declare. Cluster API reads them as empty:
// the patch is never made, or writes "<no value>" into the object. See renderValueTemplate in Cluster API's json_patch_generator.go.
func templateVariables(p part) {
	spec := p.in("spec")
	names := []string{"builtin"}
	for _, variable := range spec.each("variables") {
		name, ok := variable.known("name")
		if !ok {
			return
		}
		names = append(names, name)
	}
	patches := spec.each("patches")
	if slices.ContainsFunc(patches, func(patch part) bool { return patch.in("external").has("discoverVariablesExtension") }) {
		return // a runtime extension declares further variables
	}
	for _, patch := range patches {
		patch.uses("enabledIf", names)
		for _, definition := range patch.each("definitions") {
			for _, change := range definition.each("jsonPatches") {
				change.in("valueFrom").uses("template", names)
			}
		}
	}
}

// uses reports the first variable of a template that is not among names.
func (p part) uses(field string, names []string) {
	text, ok := p.known(field)
	if !ok {
		return
	}
	read, err := template.New(field).Funcs(sprig.HermeticTxtFuncMap()).Parse(text)
	if err != nil || read.Tree == nil || read.Root == nil {
		return // parses reports it
	}
	if len(read.Templates()) > 1 {
		return // what it defines has variables of its own
	}
	found := variablesIn(read.Root, true)
	for _, name := range found {
		if slices.Contains(names, name) {
			continue
		}
		hint := "declare it under spec.variables"
		if nearest := diag.Nearest(name, names); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		p.refuse(field, fmt.Sprintf("this class has no variable %.80s, so the template reads it as empty", name), hint)
		return
	}
}

// variablesIn returns the variables that a part of a template reads, in their order. top tells whether the dot is the mapping with all
// variables, as it is outside of range and with.
func variablesIn(node parse.Node, top bool) (out []string) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, each := range n.Nodes {
				out = append(out, variablesIn(each, top)...)
			}
		}
	case *parse.ActionNode:
		out = variablesIn(n.Pipe, top)
	case *parse.IfNode:
		out = inBranch(&n.BranchNode, top, top)
	case *parse.RangeNode:
		out = inBranch(&n.BranchNode, top, false)
	case *parse.WithNode:
		out = inBranch(&n.BranchNode, top, false)
	case *parse.PipeNode:
		if n != nil {
			for _, command := range n.Cmds {
				out = append(out, variablesIn(command, top)...)
			}
		}
	case *parse.CommandNode:
		for _, argument := range n.Args {
			out = append(out, variablesIn(argument, top)...)
		}
	case *parse.ChainNode:
		out = variablesIn(n.Node, top)
	case *parse.FieldNode:
		if top {
			out = n.Ident[:1]
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			out = n.Ident[1:2]
		}
	}
	return out
}

// inBranch returns the variables of a branch. inside tells whether the dot in its list is the mapping with all variables.
func inBranch(b *parse.BranchNode, top, inside bool) []string {
	return slices.Concat(variablesIn(b.Pipe, top), variablesIn(b.List, inside), variablesIn(b.ElseList, top))
}
