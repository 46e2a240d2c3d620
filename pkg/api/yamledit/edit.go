// Package yamledit changes single values of YAML files that people edit. Every other byte stays as it is, including comments, order, quotes
// and line ends. The package edits text at the positions of nodes. It then parses the result and checks that nothing else has changed its
// meaning.
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

// ErrCannotEdit is in the error of an edit if only the file's author can make this change without harm, because of aliases or because the
// value spans several lines.
var ErrCannotEdit = errors.New("cannot edit this file without rewriting it")

// Path is the path from the top of a document to a value. A string is a field, an int is the index of an item.
type Path []any

// ParsePath parses a path: "a[0].b" is the field a, the item 0 and the field b. As in Helm's --set, a backslash takes away the meaning of
// the character after it: "labels.example\.com/a" is the field labels and the field example.com/a.
func ParsePath(text string) (Path, error) {
	var path Path
	for rest, more := text, true; more; {
		var part string
		part, rest, more = cutField(rest, '.')
		field, indexes, _ := cutField(part, '[')
		if field == "" {
			return nil, fmt.Errorf("path %q has an empty field", text)
		}
		path = append(path, escapes.Replace(field))
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

// escapes takes the backslashes of a path away.
var escapes = strings.NewReplacer(`\\`, `\`, `\.`, ".", `\[`, "[")

// cutField cuts text at the first separator that has no backslash before it.
func cutField(text string, separator byte) (before, after string, found bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case separator:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// String returns the path in the form that ParsePath reads.
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
			b.WriteString(strings.NewReplacer(`\`, `\\`, ".", `\.`, "[", `\[`).Replace(s))
		}
	}
	return b.String()
}

// Set returns src with the value at path changed or added. document is the index of the document, from 0. The value is text, a number, true
// or false, and for a missing field also a list or fields. Set adds missing fields, but no list items. The error is one of Parse,
// ErrCannotEdit, or says that path does not lead to a scalar.
func Set(src []byte, document int, path Path, value any) ([]byte, error) {
	root, err := top(src, document, path)
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return nil, err
	}
	if node.Kind != yaml.ScalarNode && Find(root, path...) != nil {
		return nil, fmt.Errorf("set %s: only a single value can be set", path)
	}
	changed, err := newEditor(src).set(root, path, node)
	if err != nil {
		return nil, err
	}
	return changed, proveOnly(src, changed, document, path, func(before any) any { return withValue(before, path, value) })
}

// Append returns src with item added to the end of the list at path. It adds the list if it is missing. The errors are those of Set.
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
		return nil, inLine(list, fmt.Errorf("expected a list at %s, found %s", path, Describe(list)))
	default:
		if changed, err = e.set(root, path, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}); err != nil {
			return nil, err
		}
	}
	return changed, proveOnly(src, changed, document, path, func(before any) any {
		items, _ := valueAt(before, path).([]any)
		return withValue(before, path, append(slices.Clone(items), wanted))
	})
}

// top returns the top node of a document of src. It refuses an empty path.
func top(src []byte, document int, path Path) (*yaml.Node, error) {
	documents, err := Parse(src)
	if err != nil {
		return nil, placed(src, err)
	}
	if document >= len(documents) {
		return nil, fmt.Errorf("there is no document %d", document)
	}
	if len(path) == 0 {
		return nil, errors.New("path is empty")
	}
	return documents[document], nil
}

// values decodes all documents of src.
func values(src []byte) ([]any, error) {
	var all []any
	for decoder := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCannotEdit, placed(src, err))
		}
		all = append(all, value)
	}
}

// proveOnly checks that src and changed decode to the same values, except for the change to one document. Otherwise it returns
// ErrCannotEdit in the line of the node at path. What the parser says of changed is about a text that nobody wrote, so the error leaves it
// out.
func proveOnly(src, changed []byte, document int, path Path, change func(before any) any) error {
	before, err := values(src)
	if err != nil {
		return err
	}
	after, err := values(changed)
	if err == nil && document < len(before) {
		before[document] = change(before[document])
		if reflect.DeepEqual(before, after) {
			return nil
		}
	}
	root, err := top(src, document, path)
	if err != nil {
		return err
	}
	return cannotEdit(Nearest(root, path...), unusual)
}

// valueAt returns the value at path in doc, or nil.
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

// withValue returns a copy of doc with this value at path.
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

// walk follows path from n as far as nodes exist. It returns the last node and the steps of path that remain, which are fields only.
func walk(n *yaml.Node, path Path) (*yaml.Node, Path, error) {
	for i, s := range path {
		if n.Kind == yaml.AliasNode {
			return nil, nil, cannotEdit(n, "it is an alias of a value elsewhere")
		}
		if index, ok := s.(int); ok {
			if n.Kind != yaml.SequenceNode || index >= len(n.Content) {
				return nil, nil, inLine(n, fmt.Errorf("there is no item %d", index))
			}
			n = n.Content[index]
			continue
		}
		field, ok := s.(string)
		if !ok || n.Kind != yaml.MappingNode && !IsNull(n) {
			return nil, nil, inLine(n, fmt.Errorf("expected fields, found %s", Describe(n)))
		}
		next := ownField(n, field)
		if next == nil {
			return n, path[i:], onlyFields(path[i:])
		}
		n = next
	}
	return n, nil, nil
}

// ownField is Lookup without following aliases, because the text of an alias's value is elsewhere in the file.
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
	if err := key.Encode(name); err != nil { // Encode adds quotes if name looks like a number or the like
		key.SetString(name)
	}
	mapping.Content = append(mapping.Content, key, value)
}
