package clustertemplate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// anyScalar are the types of a value whose type does not follow from the template.
var anyScalar = []string{"string", "integer", "number", "boolean"}

// anyValue are the types of a value that is written as it is given: a list of addresses is one.
var anyValue = append(slices.Clone(anyScalar), "array", "object")

// valueOf returns the path of the chart's value for a variable: openstackCloud for OPENSTACK_CLOUD.
func valueOf(name string) string {
	if name == controlPlaneCount {
		return "controlPlane.replicas"
	}
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word == "" {
			continue
		}
		word = strings.ToLower(word)
		if b.Len() > 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// variables decides what each variable is as a value.
func (t *translation) variables() {
	taken := map[string]string{"global": "Helm", "controlPlane": controlPlaneCount, "pools": workerCount}
	for _, v := range t.named {
		uses := v.placed()
		if len(uses) == 0 || v.name == clusterName || v.name == namespaceName {
			continue
		}
		value := valueOf(v.name)
		if v.name == workerCount && t.pool != "" {
			value = "pools"
			taken[value] = v.name
		}
		if !startsWithLetter(value) {
			t.fault(uses[0].line, "give the variable a name with letters", "no value can be made of the variable %s", v.name)
			continue
		}
		if other := taken[value]; other != "" && other != v.name {
			t.fault(uses[0].line, "give one of them another name in the template",
				"the variables %s and %s would be one value, %s", other, v.name, value)
			continue
		}
		taken[value] = v.name
		v.value = value
		t.values = append(t.values, t.decide(v, uses))
	}
	slices.SortFunc(t.values, func(a, b Variable) int { return strings.Compare(a.Value, b.Value) })
}

func startsWithLetter(s string) bool { return s != "" && s[0] >= 'a' && s[0] <= 'z' }

// decide chooses the type and the default of a variable from its uses.
func (t *translation) decide(v *variable, uses []*use) Variable {
	out := Variable{Name: v.name, Value: v.value, Line: uses[0].line, Credential: t.isCredential(v.name, uses)}
	defaults := v.defaults(uses)
	if v.isFixed() {
		t.decideFixed(v, &out, uses, defaults)
		return out
	}
	switch first := uses[0]; {
	case v.inline:
		v.types, out.Default = anyScalar, ""
	case hasDefault(first.node):
		out.Default = v.typed(defaults[0], uses)
	default:
		out.Required = true
	}
	if v.types == nil {
		v.types = t.guess(uses)
	}
	out.types = v.types
	return out
}

// guess is what a value without a default may be, by where it stands: it refuses nothing that the object might take.
func (t *translation) guess(uses []*use) []string {
	for _, u := range uses {
		if u.whole && u.field == "replicas" {
			return []string{"integer"}
		}
	}
	switch {
	case quoted(uses):
		return []string{"string"}
	case !slices.ContainsFunc(uses, func(u *use) bool { return !u.whole || !t.isTyped(u) }):
		return anyValue
	}
	return anyScalar
}

// quoted tells whether a variable stands in quotes only: 1.30 is a text there, and a number that was given would lose its zero.
func quoted(uses []*use) bool {
	return !slices.ContainsFunc(uses, func(u *use) bool { return u.at != inDoubleQuotes && u.at != inSingleQuotes })
}

// property returns the schema of a value.
func (t *translation) property(v Variable) map[string]any {
	p := map[string]any{"description": fmt.Sprintf("%s of the template, line %d.", v.Name, v.Line)}
	if len(v.types) == 1 {
		p["type"] = v.types[0]
	} else {
		p["type"] = v.types
	}
	switch v.Name {
	case kubernetesVersion:
		p["pattern"] = versionPattern
	case controlPlaneCount, workerCount:
		p["minimum"] = least(v.Name)
	}
	return p
}

// schema returns the schema of all values.
func (t *translation) schema(o Options) ([]byte, error) {
	properties, required, example := map[string]any{}, []string{}, map[string]any{}
	for _, v := range t.values {
		switch {
		case v.Name == controlPlaneCount:
			properties["controlPlane"] = map[string]any{
				"type": "object", "additionalProperties": false, "description": "Nodes of the control plane.",
				"properties": map[string]any{"replicas": t.property(v)},
			}
			example["controlPlane"] = map[string]any{"replicas": v.Default}
			continue
		case v.Name == workerCount && t.pool != "":
			properties["pools"] = t.poolSchema(v)
			example["pools"] = []any{map[string]any{"name": t.pool, "replicas": 1}}
			continue
		}
		properties[v.Value] = t.property(v)
		if v.Required {
			required = append(required, v.Value)
			example[v.Value] = v.example(o)
		}
	}
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft-07/schema#", "title": "Values of the " + o.Name + " flavour", "type": "object",
		"additionalProperties": false,
		"properties":           properties,
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	if len(example) > 0 {
		schema["examples"] = []any{example}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(schema)
	return out.Bytes(), err
}

// example returns a value that a person would give.
func (v *Variable) example(o Options) any {
	switch {
	case v.Name == kubernetesVersion:
		return o.ExampleVersion
	case v.types[0] == "integer":
		return 1
	}
	return v.Name
}

func (t *translation) poolSchema(v Variable) map[string]any {
	return map[string]any{
		"type": "array", "minItems": 1, "maxItems": 1, "description": "The one pool of workers that the template has.",
		"items": map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{"name", "replicas"},
			"properties": map[string]any{
				"name":     map[string]any{"type": "string", "enum": []string{t.pool}, "description": "Name of the pool, as the template has it."},
				"replicas": t.property(v),
			},
		},
	}
}

// valuesFile is values.yaml: what has a default, and in comments what has none.
func (t *translation) valuesFile(o Options) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# The variables of %s.\n", o.title())
	for _, v := range t.values {
		fmt.Fprintf(&out, "# %s, line %d%s.\n", v.Name, v.Line, map[bool]string{true: "; required", false: ""}[v.Required]+
			map[bool]string{true: "; a credential: never in Git in clear", false: ""}[v.Credential])
		var value any
		switch {
		case v.Required:
			fmt.Fprintf(&out, "# %s:\n", v.Value)
			continue
		case v.Name == controlPlaneCount:
			value = map[string]any{"controlPlane": map[string]any{"replicas": v.Default}}
		case v.Name == workerCount && t.pool != "":
			value = map[string]any{"pools": []any{map[string]any{"name": t.pool, "replicas": v.Default}}}
		default:
			value = map[string]any{v.Value: v.Default}
		}
		enc := yaml.NewEncoder(&out)
		enc.SetIndent(2)
		if err := enc.Encode(value); err != nil {
			return nil, err
		}
		if err := enc.Close(); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// credentials warns of values that are secret.
func (t *translation) credentials(b *strings.Builder) {
	if !slices.ContainsFunc(t.values, func(v Variable) bool { return v.Credential }) {
		return
	}
	b.WriteString("\n## Values that are credentials by their names\n\nThey must not be put in Git in clear: in no file of values, and in " +
		"no release. Change the chart, so that the object refers to a Secret, and encrypt that with `fleetctl secret encrypt`:\n\n")
	for _, v := range t.values {
		if v.Credential {
			fmt.Fprintf(b, "- `%s` (line %d of the template)\n", v.Value, v.Line)
		}
	}
}

// readme of the chart.
func (t *translation) readme(o Options) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nThis chart was made of the template `%s`. It is yours to change.\n\n", o.Name,
		strings.ReplaceAll(o.title(), "`", "'"))
	b.WriteString("| Value | Variable | Default |\n|---|---|---|\n")
	for _, v := range t.values {
		def := "none: required"
		if !v.Required {
			text, err := json.Marshal(v.Default)
			if err == nil {
				def = "`" + strings.NewReplacer("|", `\|`, "`", "'").Replace(string(text)) + "`"
			}
		}
		value := v.Value
		if value == "pools" && v.Name == workerCount {
			value = "pools[0].replicas"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", value, v.Name, def)
	}
	b.WriteString("\nThe name of the cluster, and its namespace, are those of its release.\n")
	t.credentials(&b)
	if len(t.secrets) > 0 {
		b.WriteString("\n## Secrets that the template makes and the chart does not\n\nA Secret in a chart would be in Git in clear. Make each " +
			"of them encrypted, with `fleetctl secret encrypt`, in the namespace of the cluster:\n\n")
		for _, s := range t.secrets {
			fmt.Fprintf(&b, "- `%s` (line %d of the template)\n", strings.ReplaceAll(oneLine(s.Name), "`", "'"), s.Line)
		}
	}
	b.WriteString(`
## What to know before you change values

A machine template, and a template of a bootstrap configuration, cannot be changed once they are there. A value that stands in one
of them changes for new clusters only, unless the template's name changes with it: write that value into ` + "`metadata.name`" +
		` and into each reference to it.

All objects but pools and their health checks have ` + "`helm.sh/resource-policy: keep`" +
		`: deleting the Cluster deletes them, in the order of Cluster API.
`)
	return []byte(b.String())
}
