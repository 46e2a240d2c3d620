package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// reference returns the fields as Markdown, one table for each type, in the order in which fleet.yaml refers to the types.
func reference(schema *jsonschema.Schema) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# fleet.yaml

Generated from the types in pkg/api/v1alpha1 by `+"`go generate`"+`; do not edit.

`+"`%s`"+` stands at the top of the fleet repo. It is read strictly: an unknown, duplicate or mistyped field is an error, with its
place in the file. For completion in an editor use the [JSON schema](fleet.schema.json).
`, v1alpha1.FileName)
	for _, name := range inOrder(schema, typeOf(schema)) {
		definition := schema.Definitions[name]
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Field | Type | Required | Description |\n|---|---|---|---|\n", name, escape(definition.Description))
		for field := definition.Properties.Oldest(); field != nil; field = field.Next() {
			required := ""
			if slices.Contains(definition.Required, field.Key) {
				required = "yes"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", field.Key, describe(field.Value), required, escape(field.Value.Description))
		}
	}
	return b.Bytes()
}

// inOrder returns the type called name and all types that it refers to, each once. A type comes before the types that it refers to.
func inOrder(schema *jsonschema.Schema, name string) []string {
	names := []string{name}
	for field := schema.Definitions[name].Properties.Oldest(); field != nil; field = field.Next() {
		inner := typeOf(field.Value)
		if field.Value.Items != nil {
			inner = typeOf(field.Value.Items)
		}
		if inner == "" {
			continue
		}
		for _, n := range inOrder(schema, inner) {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// typeOf returns the name of the type that s refers to, or "".
func typeOf(s *jsonschema.Schema) string {
	name, _ := strings.CutPrefix(s.Ref, "#/$defs/")
	return name
}

func describe(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		return fmt.Sprintf("[%s](#%s)", typeOf(s), strings.ToLower(typeOf(s)))
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case len(s.Enum) > 0:
		values := make([]string, 0, len(s.Enum))
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(values, ", ")
	case s.Type == "array":
		return "list of " + describe(s.Items)
	case s.AdditionalProperties != nil && s.Type == "object":
		return describe(s.AdditionalProperties) + " by name"
	case s.Type == "integer":
		return "number"
	case s.Type == "string":
		return "text"
	case s.Type == "boolean":
		return "true or false"
	}
	return s.Type
}

// escape escapes text that Markdown would read as the end of a table cell or as HTML.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}
