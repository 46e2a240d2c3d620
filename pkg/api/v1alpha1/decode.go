package v1alpha1

import (
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// decoder fills Go values from YAML nodes, strictly, and records the position of each field.
type decoder struct {
	*collector
	budget int // nodes that may still be visited; an alias costs as much as the nodes it expands to
	broken map[string]bool
}

func (d *decoder) decode(root *yaml.Node, into any) {
	d.value(root, reflect.ValueOf(into).Elem(), "", 0)
}

// exhausted tells whether the document was too large, so that only a part of it was decoded.
func (d *decoder) exhausted() bool { return d.budget < 0 }

// isBroken tells whether the field at path, or a field around it, could not be decoded. Findings about its value would be noise.
func (d *decoder) isBroken(path string) bool {
	for ; path != ""; path = parentPath(path) {
		if d.broken[path] {
			return true
		}
	}
	return false
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, depth int) {
	if d.exhausted() {
		return
	}
	d.source.positions[path] = position{n.Line, n.Column}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.budget--; d.exhausted() || depth > maxDepth {
		d.budget = -1
		d.errorf(RuleLimit, path, "write it out without aliases (*name)", "file is too large or too deep once its aliases are expanded")
		return
	}
	if yamledit.IsNull(n) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, depth+1)
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			d.mistyped(n, path, "fields", "")
			return
		}
		d.fields(n, v, path, depth)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.mistyped(n, path, "a list", "put `- ` before each item")
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			d.value(item, v.Index(i), itemPath(path, i), depth+1)
		}
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			d.mistyped(n, path, "fields", "")
			return
		}
		d.entries(n, v, path, depth)
	case reflect.Int:
		number, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil {
			d.mistyped(n, path, "a whole number", "")
			return
		}
		v.SetInt(int64(number))
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			d.mistyped(n, path, "true or false", "")
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			hint := ""
			if n.Kind == yaml.ScalarNode {
				hint = "put it in quotes"
			}
			d.mistyped(n, path, "text", hint)
			return
		}
		v.SetString(n.Value)
	default: // TestDecodeKnowsAllTypes ensures that the types of this package have no other kinds
		d.mistyped(n, path, "a supported type", "")
	}
}

// entries fills a map from a mapping with arbitrary keys.
func (d *decoder) entries(n *yaml.Node, v reflect.Value, path string, depth int) {
	v.Set(reflect.MakeMap(v.Type()))
	firstLine := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line, twice := firstLine[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			d.unknown(key, path, nil)
		case twice:
			d.at(key, RuleDuplicateField, fieldPath(path, key.Value), "", "field is given twice, first in line %d", line)
		default:
			firstLine[key.Value] = key.Line
			entry := reflect.New(v.Type().Elem()).Elem()
			d.value(value, entry, fieldPath(path, key.Value), depth+1)
			v.SetMapIndex(reflect.ValueOf(key.Value), entry)
		}
	}
}

// fields fills a struct from a mapping.
func (d *decoder) fields(n *yaml.Node, v reflect.Value, path string, depth int) {
	index, names := fieldsOf(v.Type())
	firstLine := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, known := index[key.Value]
		line, twice := firstLine[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !known:
			d.unknown(key, path, names)
		case twice:
			d.at(key, RuleDuplicateField, fieldPath(path, key.Value), "", "field is given twice, first in line %d", line)
		default:
			firstLine[key.Value] = key.Line
			d.value(value, v.Field(field), fieldPath(path, key.Value), depth+1)
		}
	}
}

// unknown reports a key that is not a field here. The hint has the field with the nearest name.
func (d *decoder) unknown(key *yaml.Node, path string, names []string) {
	if key.Kind != yaml.ScalarNode {
		d.at(key, RuleType, path, "", "a field's name cannot be %s", yamledit.Describe(key))
		return
	}
	if key.ShortTag() == "!!merge" {
		d.at(key, RuleUnknownField, path, "write the fields out", "merge keys (<<) are not supported")
		return
	}
	hint := "known here: " + strings.Join(names, ", ")
	if nearest := diag.Nearest(key.Value, names); nearest != "" {
		hint = "did you mean " + nearest + "?"
	}
	d.at(key, RuleUnknownField, path, hint, "unknown field %s", quoted(key))
}

func (d *decoder) mistyped(n *yaml.Node, path, want, hint string) {
	d.broken[path] = true
	d.errorf(RuleType, path, hint, "expected %s, found %s", want, yamledit.Describe(n))
}

// at is errorf with the position of n instead of the position of path.
func (d *decoder) at(n *yaml.Node, rule, path, hint, format string, args ...any) {
	d.errorf(rule, path, hint, format, args...)
	last := &d.findings[len(d.findings)-1]
	last.Line, last.Column = n.Line, n.Column
}

// fieldsOf returns the index of each field of a struct type by the field's YAML name, and these names in order.
func fieldsOf(t reflect.Type) (index map[string]int, names []string) {
	index = map[string]int{}
	for i := range t.NumField() {
		if name := fieldName(t.Field(i)); name != "" {
			index[name] = i
			names = append(names, name)
		}
	}
	return index, names
}

// fieldName returns the YAML name of a field, or "" if it has none.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" {
		return ""
	}
	return name
}

// isRequired tells whether a field is required: its tag has neither omitempty nor omitzero.
func isRequired(f reflect.StructField) bool {
	return !strings.Contains(f.Tag.Get("json"), ",omit")
}
