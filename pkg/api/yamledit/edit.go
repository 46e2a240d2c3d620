// Package yamledit changes single values of YAML files that people edit: every other byte stays as it is, comments, order,
// quotes and line ends included. It writes text at the places of nodes and proves each result: the changed file has to mean what it
// meant before, but for the change.
package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrCannotEdit is in the error of every edit where a file is written in a way that only its author can change without harm:
// through aliases, or with the value over several lines.
var ErrCannotEdit = errors.New("cannot edit this file without rewriting it")

// Path leads from the top of a document to a value: a string is a field, an int the index of an item.
type Path []any

// ParsePath takes a[0].b apart into "a", 0, "b".
func ParsePath(text string) (Path, error) {
	var path Path
	for part := range strings.SplitSeq(text, ".") {
		name, indexes, _ := strings.Cut(part, "[")
		if name == "" {
			return nil, fmt.Errorf("path %q has an empty field", text)
		}
		path = append(path, name)
		for indexes != "" {
			index, more, ok := strings.Cut(indexes, "]")
			i, err := strconv.Atoi(index)
			if !ok || err != nil || i < 0 || more != "" && more[0] != '[' {
				return nil, fmt.Errorf("path %q has a bad index", text)
			}
			path, indexes = append(path, i), strings.TrimPrefix(more, "[")
		}
	}
	return path, nil
}

// String is the path as ParsePath reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch s := s.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

// Set returns src with the single value (text, number, true or false) at path of a document, counted from 0, changed or added.
// Fields on the way that are missing are added, list items are not. Errors are those of Parse, a path that does not lead to a single
// value, or ErrCannotEdit.
func Set(src []byte, document int, path Path, value any) ([]byte, error) {
	root, err := top(src, document, path)
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return nil, err
	}
	if node.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("set %s: only a single value can be set", path)
	}
	changed, err := newEditor(src).set(root, path, node)
	if err != nil {
		return nil, err
	}
	return changed, proveOnly(src, changed, document, func(before any) any { return withValue(before, path, value) })
}

// Append returns src with item added to the end of the list at path, or with the list added. Errors are those of Set.
func Append(src []byte, document int, path Path, item *yaml.Node) ([]byte, error) {
	root, err := top(src, document, path)
	if err != nil {
		return nil, err
	}
	var wanted any
	if err := item.Decode(&wanted); err != nil {
		return nil, err
	}
	e := newEditor(src)
	list, rest, err := walk(root, path)
	if err != nil {
		return nil, err
	}
	var changed []byte
	switch {
	case len(rest) == 0 && list.Kind == yaml.SequenceNode:
		parent, _, err := walk(root, path[:len(path)-1])
		if err != nil {
			return nil, err
		}
		if changed, err = e.appendToList(parent, list, item); err != nil {
			return nil, err
		}
	case len(rest) == 0 && !IsNull(list):
		return nil, fmt.Errorf("expected a list at %s, found %s", path, Describe(list))
	default:
		if changed, err = e.set(root, path, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}); err != nil {
			return nil, err
		}
	}
	return changed, proveOnly(src, changed, document, func(before any) any {
		items, _ := valueAt(before, path).([]any)
		return withValue(before, path, append(slices.Clone(items), wanted))
	})
}

// top is the top node of a document of src, in which path leads somewhere.
func top(src []byte, document int, path Path) (*yaml.Node, error) {
	documents, err := Parse(src)
	if err != nil {
		return nil, err
	}
	if document >= len(documents) {
		return nil, fmt.Errorf("there is no document %d", document)
	}
	if len(path) == 0 {
		return nil, errors.New("path is empty")
	}
	return documents[document], nil
}

// values are what the documents of src mean.
func values(src []byte) ([]any, error) {
	var all []any
	for decoder := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCannotEdit, err)
		}
		all = append(all, value)
	}
}

// proveOnly checks that changed means what src means, but for what change makes of one document.
func proveOnly(src, changed []byte, document int, change func(before any) any) error {
	before, err := values(src)
	if err != nil {
		return err
	}
	after, err := values(changed)
	if err != nil {
		return err
	}
	if document >= len(before) {
		return ErrCannotEdit
	}
	before[document] = change(before[document])
	if !reflect.DeepEqual(before, after) {
		return ErrCannotEdit
	}
	return nil
}

// valueAt is what stands at path in doc, or nil.
func valueAt(doc any, path Path) any {
	for _, s := range path {
		switch s := s.(type) {
		case string:
			fields, _ := doc.(map[string]any)
			doc = fields[s]
		case int:
			list, _ := doc.([]any)
			if s >= len(list) {
				return nil
			}
			doc = list[s]
		}
	}
	return doc
}

// withValue returns a copy of doc with value at path.
func withValue(doc any, path Path, value any) any {
	if len(path) == 0 {
		return value
	}
	if index, ok := path[0].(int); ok {
		old, _ := doc.([]any)
		list := slices.Clone(old)
		if index < len(list) {
			list[index] = withValue(list[index], path[1:], value)
		}
		return list
	}
	field, _ := path[0].(string)
	fields := map[string]any{}
	if old, ok := doc.(map[string]any); ok {
		maps.Copy(fields, old)
	}
	fields[field] = withValue(fields[field], path[1:], value)
	return fields
}

// walk follows path from n as far as there are nodes, and returns the last one with the steps that remain: fields only.
func walk(n *yaml.Node, path Path) (*yaml.Node, Path, error) {
	for i, s := range path {
		if n.Kind == yaml.AliasNode {
			return nil, nil, fmt.Errorf("%w: line %d is an alias", ErrCannotEdit, n.Line)
		}
		if index, ok := s.(int); ok {
			if n.Kind != yaml.SequenceNode || index >= len(n.Content) {
				return nil, nil, fmt.Errorf("there is no item %d in line %d", index, n.Line)
			}
			n = n.Content[index]
			continue
		}
		field, ok := s.(string)
		if !ok || n.Kind != yaml.MappingNode && !IsNull(n) {
			return nil, nil, fmt.Errorf("expected fields in line %d, found %s", n.Line, Describe(n))
		}
		next := ownField(n, field)
		if next == nil {
			return n, path[i:], onlyFields(path[i:])
		}
		n = next
	}
	return n, nil, nil
}

// ownField is Lookup that leaves aliases as they are: what they stand for is written elsewhere.
func ownField(mapping *yaml.Node, field string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == field {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func onlyFields(path Path) error {
	for _, s := range path {
		if index, ok := s.(int); ok {
			return fmt.Errorf("there is no item %d", index)
		}
	}
	return nil
}

func addField(mapping *yaml.Node, name string, value *yaml.Node) {
	key := &yaml.Node{}
	if err := key.Encode(name); err != nil { // quoted where it looks like something else
		key.SetString(name)
	}
	mapping.Content = append(mapping.Content, key, value)
}
