package yamledit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Remove returns src without the field or list item at path; where there is none, src itself. Its lines go, with the comments in
// them; comments above it stay. A list whose last item goes becomes []. Errors are those of Set.
func Remove(src []byte, document int, path Path) ([]byte, error) {
	root, err := top(src, document)
	if err != nil {
		return nil, err
	}
	if len(path) == 0 {
		return nil, fmt.Errorf("%w: path is empty", ErrCannotEdit)
	}
	n, rest, err := walk(root, path)
	if err != nil || len(rest) > 0 {
		return src, err
	}
	parent, _, err := walk(root, path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	e := newEditor(src)
	var changed []byte
	switch {
	case parent.Style&yaml.FlowStyle != 0:
		changed, err = e.removeFromFlow(parent, n)
	case parent.Kind == yaml.SequenceNode && len(parent.Content) == 1 && len(path) > 1:
		outer, _, walkErr := walk(root, path[:len(path)-2])
		if walkErr != nil {
			return nil, walkErr
		}
		changed, err = e.emptyList(outer, parent)
	default:
		changed, err = e.removeLines(parent, n)
	}
	if err != nil {
		return nil, err
	}
	return changed, proveOnly(src, changed, document, func(before any) any { return without(before, path) })
}

// place is where n stands in parent: for a field, where its key does.
func place(parent, n *yaml.Node) (index, step int) {
	if parent.Kind == yaml.MappingNode {
		return slices.Index(parent.Content, n) - 1, 2
	}
	return slices.Index(parent.Content, n), 1
}

// removeLines takes the lines of a field or item of the block parent out.
func (e *editor) removeLines(parent, n *yaml.Node) ([]byte, error) {
	i, step := place(parent, n)
	if len(parent.Content) <= step {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	first := parent.Content[i]
	line, column := first.Line, first.Column
	if parent.Kind == yaml.SequenceNode {
		column = parent.Column // where the dash is
	}
	start := e.lines[line-1]
	if before := e.src[start : start+column-1]; len(bytes.TrimSpace(before)) > 0 { // it stands behind the dash of an item
		if i+step >= len(parent.Content) {
			return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
		}
		return e.splice(e.offset(first), e.offset(parent.Content[i+step]), ""), nil
	}
	_, next := e.line(e.lastLine(&yaml.Node{Line: line, Content: []*yaml.Node{first, n}}, column-1))
	return e.splice(start, next, ""), nil
}

// emptyList writes [] in the place of the block list n, which has one item, behind its key of parent.
func (e *editor) emptyList(parent, n *yaml.Node) ([]byte, error) {
	if parent.Kind != yaml.MappingNode || n.Anchor != "" {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	key := parent.Content[slices.Index(parent.Content, n)-1]
	end, ok := e.scalarEnd(key)
	colon := bytes.IndexByte(e.src[end:], ':')
	if !ok || colon < 0 || key.Line == n.Line {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	_, next := e.line(e.lastLine(n, n.Column-1))
	cut := newEditor(e.splice(e.lines[n.Line-1], next, ""))
	return cut.splice(end+colon+1, end+colon+1, " []"), nil
}

// removeFromFlow takes a field or item out of {…} or […], with the comma that parted it from its neighbour.
func (e *editor) removeFromFlow(parent, n *yaml.Node) ([]byte, error) {
	i, step := place(parent, n)
	from := e.offset(parent.Content[i])
	if i+step < len(parent.Content) {
		return e.splice(from, e.offset(parent.Content[i+step]), ""), nil
	}
	to := e.flowEnd(e.offset(n))
	if i > 0 {
		comma := bytes.LastIndexByte(e.src[:from], ',')
		if comma < 0 {
			return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
		}
		from = comma
	}
	return e.splice(from, to, ""), nil
}

// flowEnd is where the value inside of {…} or […] that starts at i ends: at the comma or bracket behind it. What it takes for the end
// where text is written oddly is caught by the proof.
func (e *editor) flowEnd(i int) int {
	depth, quote := 0, byte(0)
	for ; i < len(e.src); i++ {
		c := e.src[i]
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']' || c == ',') && depth == 0:
			return i
		case c == '}' || c == ']':
			depth--
		}
	}
	return i
}

// without returns a copy of doc without what stands at path.
func without(doc any, path Path) any {
	switch s := path[0].(type) {
	case int:
		old, _ := doc.([]any)
		if s >= len(old) {
			return doc
		}
		list := slices.Clone(old)
		if len(path) == 1 {
			return slices.Delete(list, s, s+1)
		}
		list[s] = without(list[s], path[1:])
		return list
	case string:
		old, _ := doc.(map[string]any)
		fields := maps.Clone(old)
		if len(path) == 1 {
			delete(fields, s)
		} else {
			fields[s] = without(fields[s], path[1:])
		}
		return fields
	}
	return doc
}
