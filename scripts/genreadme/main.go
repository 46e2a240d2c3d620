// Command genreadme writes what the README of each chart says about its values, from the chart's values.schema.json and
// values.yaml, between two marks; all else in a README is written by hand. `make docs` runs it.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	begin = "<!-- From values.schema.json and values.yaml. -->\n"
	end   = "<!-- Until here. -->\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: genreadme FOLDER-OF-CHARTS")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func generate(charts string) error {
	readmes, err := filepath.Glob(filepath.Join(charts, "*", "README.md"))
	if err != nil {
		return err
	}
	if len(readmes) == 0 {
		return fmt.Errorf("no charts in %s", charts)
	}
	for _, name := range readmes {
		_, now, err := readme(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name, now, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// readme returns the README as it is and as it should be.
func readme(name string) (was, now []byte, err error) {
	if was, err = os.ReadFile(name); err != nil {
		return nil, nil, err
	}
	before, rest, ok := bytes.Cut(was, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, nil, errors.New("the marks for its generated part are missing")
	}
	dir := filepath.Dir(name)
	schema, err := parse(filepath.Join(dir, "values.schema.json"))
	if err != nil {
		return nil, nil, err
	}
	values, err := parse(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return nil, nil, err
	}
	part, err := valuesPart(schema, values)
	if err != nil {
		return nil, nil, err
	}
	return was, bytes.Join([][]byte{before, []byte(begin), part, []byte(end), after}, nil), nil
}

// parse reads YAML, and so JSON, as a node: unlike a map it keeps the order of the fields.
func parse(name string) (*yaml.Node, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(document.Content) != 1 {
		return nil, fmt.Errorf("%s is empty", name)
	}
	return document.Content[0], nil
}

func valuesPart(schema, values *yaml.Node) ([]byte, error) {
	examples := field(schema, "examples")
	if examples == nil || len(examples.Content) == 0 {
		return nil, errors.New("the schema has no example")
	}
	example := examples.Content[0]
	plain(example)
	var smallest bytes.Buffer
	enc := yaml.NewEncoder(&smallest)
	enc.SetIndent(2)
	if err := enc.Encode(example); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "## The values of a small cluster\n\n```yaml\n%s```\n\n", smallest.Bytes())
	fmt.Fprintf(&out, "## All values\n\n| Value | Type | Default | Meaning |\n|---|---|---|---|\n")
	rows(&out, "", schema, values)
	return out.Bytes(), nil
}

// plain takes JSON's style from a node and all below: it is printed as people write YAML.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}

// rows writes a row for each value that schema knows; values holds their defaults, or is nil inside of a list.
func rows(out *bytes.Buffer, at string, schema, values *yaml.Node) {
	properties := field(schema, "properties")
	if properties == nil {
		return
	}
	for i := 0; i+1 < len(properties.Content); i += 2 {
		name, property := properties.Content[i].Value, properties.Content[i+1]
		value := field(values, name)
		fallback := ""
		switch given := cmp.Or(value, field(property, "default")); {
		case field(property, "properties") != nil:
		case given != nil && (given.Value != "" || len(given.Content) > 0):
			fallback = "`" + flow(given) + "`"
		case isRequired(schema, name):
			fallback = "required"
		}
		fmt.Fprintf(out, "| `%s%s` | %s | %s | %s |\n", at, name, typeOf(property), fallback, text(field(property, "description")))
		rows(out, at+name+".", property, value)
		if items := field(property, "items"); items != nil {
			rows(out, at+name+"[].", items, nil)
		}
	}
}

func typeOf(s *yaml.Node) string {
	if enum := field(s, "enum"); enum != nil {
		var all []string
		for _, v := range enum.Content {
			if v.Value != "" {
				all = append(all, "`"+v.Value+"`")
			}
		}
		return strings.Join(all, ", ")
	}
	switch t := field(s, "type"); {
	case t == nil || t.Kind == yaml.SequenceNode:
		if field(s, "items") != nil {
			return "list"
		}
		return "number or text"
	case t.Value == "integer":
		return "number" + limits(s)
	case t.Value == "boolean":
		return "`true`, `false`"
	case t.Value == "array":
		return "list"
	case t.Value == "object" && field(s, "properties") == nil:
		return "map"
	case t.Value == "object":
		return ""
	}
	return "text"
}

func limits(s *yaml.Node) string {
	low, high := text(field(s, "minimum")), text(field(s, "maximum"))
	switch {
	case low != "" && high != "":
		return ", " + low + " to " + high
	case low != "":
		return ", from " + low
	}
	return ""
}

func isRequired(schema *yaml.Node, name string) bool {
	required := field(schema, "required")
	if required == nil {
		return false
	}
	for _, r := range required.Content {
		if r.Value == name {
			return true
		}
	}
	return false
}

// field of a mapping, or nil.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func text(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return strings.ReplaceAll(n.Value, "|", `\|`)
}

// flow prints a default on one line.
func flow(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	var parts []string
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			parts = append(parts, flow(child))
		case i%2 == 1:
			parts = append(parts, n.Content[i-1].Value+": "+flow(child))
		}
	}
	if n.Kind == yaml.SequenceNode {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
