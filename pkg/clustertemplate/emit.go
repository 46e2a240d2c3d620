package clustertemplate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drone/envsubst/v2/parse"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// The variables that clusterctl fills in itself.
const (
	clusterName       = "CLUSTER_NAME"
	namespaceName     = "NAMESPACE"
	kubernetesVersion = "KUBERNETES_VERSION"
	controlPlaneCount = "CONTROL_PLANE_MACHINE_COUNT"
	workerCount       = "WORKER_MACHINE_COUNT"
)

// dies are kinds that go when they leave the chart: pools of nodes, and who looks after them. All else goes with its Cluster, in the order
// of Cluster API.
var dies = []string{"MachineDeployment", "MachinePool", "MachineHealthCheck"}

// writeDocuments writes the template of the chart.
func (t *translation) writeDocuments(out *strings.Builder, documents []*document) {
	for i, d := range documents {
		if i > 0 {
			out.WriteString("---\n")
		}
		text := t.rewrite(d)
		if d.group != clusterGroup || !slices.Contains(dies, d.kind) {
			kept, err := yamledit.Set([]byte(text), 0, yamledit.Path{"metadata", "annotations", "helm.sh/resource-policy"}, "keep")
			if err != nil {
				t.fault(d.line+d.node.Line-1, "write metadata and its annotations as blocks, a line for each field",
					"the annotation that keeps the object cannot be added: %v", err)
				continue
			}
			text = string(kept)
		}
		out.WriteString(t.helm(text))
		if !strings.HasSuffix(text, "\n") {
			out.WriteString("\n")
		}
	}
}

// helm writes a text with tokens as Helm has it.
func (t *translation) helm(text string) string {
	var out strings.Builder
	for {
		m := t.anyToken.FindStringSubmatchIndex(text)
		if m == nil {
			out.WriteString(escape(text, false))
			return out.String()
		}
		i, err := strconv.Atoi(text[m[4]:m[5]])
		if err != nil {
			i = 0 // the token is ours
		}
		var action string
		if m[2] < m[3] {
			action = t.plain(t.whole[i])
		} else {
			action = t.inside(t.parts[i].use)
		}
		out.WriteString(escape(text[:m[0]], strings.HasPrefix(action, "{{")))
		out.WriteString(action)
		text = text[m[1]:]
	}
}

// escape lets Helm write text that has its own braces in it. Before an action a brace would become part of that.
func escape(text string, beforeAction bool) string {
	escaped := strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	if rest := strings.ReplaceAll(text, "{{", ""); beforeAction && strings.HasSuffix(rest, "{") && strings.HasSuffix(escaped, "{") {
		escaped = strings.TrimSuffix(escaped, "{") + `{{ "{" }}`
	}
	return escaped
}

// plain writes a plain scalar with variables.
func (t *translation) plain(s scalar) string {
	if len(s.parts) == 1 && s.text == t.tokenOf(s.parts[0]) {
		u := t.parts[s.parts[0]].use
		switch {
		case s.key || t.isReserved(u):
			return "{{ " + t.textOf(u.node) + " | quote }}"
		case !t.isTyped(u):
			return "{{ " + t.textOf(u.node) + " }}"
		}
		return "{{ " + t.reference(u.node.Param) + " | toJson }}"
	}
	var format strings.Builder
	var arguments []string
	literal := false
	rest := s.text
	for _, i := range s.parts {
		before, after, _ := strings.Cut(rest, t.tokenOf(i))
		literal = literal || strings.ContainsFunc(before, isText)
		format.WriteString(strings.ReplaceAll(before, "%", "%%") + "%s")
		arguments = append(arguments, t.textOf(t.parts[i].use.node))
		rest = after
	}
	literal = literal || strings.ContainsFunc(rest, isText)
	format.WriteString(strings.ReplaceAll(rest, "%", "%%"))
	action := fmt.Sprintf("{{ printf %s %s", strconv.Quote(format.String()), strings.Join(arguments, " "))
	if literal {
		return action + " | quote }}"
	}
	return action + " }}" // it may be a number
}

// isText tells of a character that it makes text of what would be a number without it.
func isText(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("-_/:@ ", r)
}

// inside writes a variable into what it stands in.
func (t *translation) inside(u *use) string {
	text := t.textOf(u.node)
	switch u.at {
	case inComment:
		return escape(source(u.node), false)
	case inDoubleQuotes:
		if t.isReserved(u) {
			return "{{ " + text + " }}"
		}
		return "{{ " + text + ` | quote | trimPrefix "\"" | trimSuffix "\"" }}`
	case inSingleQuotes:
		return "{{ " + text + ` | replace "'" "''" }}`
	case inBlock:
		if t.isReserved(u) {
			return "{{ " + text + " }}"
		}
		return "{{ " + text + ` | replace "\n" "\n` + strings.Repeat(" ", u.indent) + `" }}`
	}
	return "{{ " + text + " }}"
}

func (*translation) isReserved(u *use) bool {
	return (u.node.Name == "" || hasDefault(u.node)) && (u.node.Param == clusterName || u.node.Param == namespaceName)
}

// isTyped tells whether a value is written with its own type: a list as a list, a text as text whatever it looks like.
func (t *translation) isTyped(u *use) bool {
	v := t.variable(u.node.Param)
	switch u.node.Name {
	case "", "=", ":=", ":-":
	default:
		return false
	}
	return !u.flow && !v.inline && !v.raw
}

// reference is where Helm finds a variable.
func (t *translation) reference(name string) string {
	switch name {
	case clusterName:
		return ".Release.Name"
	case namespaceName:
		return ".Release.Namespace"
	case workerCount:
		if t.pool != "" {
			return "(index .Values.pools 0).replicas"
		}
	}
	return ".Values." + valueOf(name)
}

// textOf is a variable as text, in Helm's terms.
func (t *translation) textOf(n *parse.FuncNode) string {
	ref := t.reference(n.Param)
	text := ref
	if v := t.variable(n.Param); !strings.HasPrefix(ref, ".Release.") && !slices.Equal(v.types, []string{"string"}) {
		text = `(include "value.text" ` + ref + ")"
	}
	argument := func(i int) string {
		if i < len(n.Args) {
			if a, ok := n.Args[i].(*parse.TextNode); ok {
				return strconv.Quote(a.Value)
			}
		}
		return `""`
	}
	switch n.Name {
	case "=", ":=", ":-":
		if v := t.variable(n.Param); v.inline {
			return "(ternary " + text + " " + t.defaultOf(n) + " (ne " + text + ` ""))`
		}
	case ",,":
		return "(lower " + text + ")"
	case "^^":
		return "(upper " + text + ")"
	case "#", "##":
		if len(n.Args) == 0 {
			return "(toString (len " + text + "))"
		}
		return "(trimPrefix " + argument(0) + " " + text + ")"
	case "%", "%%":
		return "(trimSuffix " + argument(0) + " " + text + ")"
	case "//":
		return "(replace " + argument(0) + " " + argument(1) + " " + text + ")"
	}
	return text
}

// defaultOf is what stands for a variable without a value, in Helm's terms.
func (t *translation) defaultOf(n *parse.FuncNode) string {
	var text strings.Builder
	var arguments []string
	for _, arg := range n.Args {
		switch a := arg.(type) {
		case *parse.TextNode:
			text.WriteString(strings.ReplaceAll(a.Value, "%", "%%"))
		case *parse.FuncNode:
			text.WriteString("%s")
			arguments = append(arguments, t.textOf(a))
		}
	}
	format := text.String()
	if len(arguments) == 0 {
		return strconv.Quote(strings.ReplaceAll(format, "%%", "%"))
	}
	return "(printf " + strconv.Quote(format) + " " + strings.Join(arguments, " ") + ")"
}

// source is a variable as the template has it, but for the default of a credential.
func source(n *parse.FuncNode) string {
	if hasDefault(n) && v1alpha1.NamesSecret(n.Param) {
		return "${" + n.Param + "}"
	}
	var args strings.Builder
	for i, arg := range n.Args {
		if i > 0 && strings.HasPrefix(n.Name, "/") {
			args.WriteString("/")
		}
		switch a := arg.(type) {
		case *parse.TextNode:
			args.WriteString(a.Value)
		case *parse.FuncNode:
			args.WriteString(source(a))
		}
	}
	if n.Name == "#" && len(n.Args) == 0 {
		return "${#" + n.Param + "}"
	}
	return "${" + n.Param + n.Name + args.String() + "}"
}
