package yamledit

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Remove returns src without the field or list item at path, or src itself if there is none. It removes the lines of the value with their
// comments. Comments above the value stay. A list that loses its last item becomes []. The errors are those of Set.
func Remove(src []byte, document int, path Path) ([]byte, error) {
	root, err := top(src, document, path)
	if err != nil {
		return nil, err
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
	wanted := func(before any) any { return without(before, path) }
	if whole := endedAs(src, changed); proveOnly(src, whole, document, path, wanted) == nil {
		return whole, nil
	}
	return changed, proveOnly(src, changed, document, path, wanted)
}

// RemoveItem removes a list item and so undoes Append. If Append would add the list or its enclosing fields in the same form for this one
// item, it removes these too. Use it only for lists that mean the same when missing and when empty.
func RemoveItem(src []byte, document int, path Path) ([]byte, error) {
	root, err := top(src, document, path)
	if err != nil {
		return nil, err
	}
	list := path[:len(path)-1]
	if items, item := Find(root, list...), Find(root, path...); item != nil && len(items.Content) == 1 {
		for made := list; len(made) > 0; made = made[:len(made)-1] {
			before, err := Remove(src, document, made)
			if err != nil {
				continue // Append cannot have added this
			}
			if again, err := Append(before, document, list, bare(item)); err == nil && bytes.Equal(again, src) {
				return before, nil
			}
		}
	}
	return Remove(src, document, path)
}

// bare returns a copy of n without comments.
func bare(n *yaml.Node) *yaml.Node {
	out := *n
	out.HeadComment, out.LineComment, out.FootComment = "", "", ""
	out.Content = make([]*yaml.Node, 0, len(n.Content))
	for _, inner := range n.Content {
		out.Content = append(out.Content, bare(inner))
	}
	return &out
}

// endedAs removes the line end and the empty lines at the end of changed if src does not end in a line end. The removed lines may have been
// the last ones.
func endedAs(src, changed []byte) []byte {
	if bytes.HasSuffix(src, []byte("\n")) {
		return changed
	}
	return bytes.TrimRight(changed, "\r\n")
}

// place returns the index of n in parent, or the index of its key if n is the value of a field, and the number of nodes for each field or
// item.
func place(parent, n *yaml.Node) (index, step int) {
	if parent.Kind == yaml.MappingNode {
		return slices.Index(parent.Content, n) - 1, 2
	}
	return slices.Index(parent.Content, n), 1
}

// removeLines removes the lines of a field or item of the block parent.
func (e *editor) removeLines(parent, n *yaml.Node) ([]byte, error) {
	i, step := place(parent, n)
	if len(parent.Content) <= step {
		return nil, cannotEdit(n, "nothing else is beside it")
	}
	first := parent.Content[i]
	line, column := first.Line, first.Column
	if parent.Kind == yaml.SequenceNode {
		list := e.atDash(parent)
		line, column = e.dashLine(list, first), list.Column
	}
	start := e.lines[line-1]
	if before := e.src[start : start+column-1]; len(bytes.TrimSpace(before)) > 0 { // the field follows the dash of an item
		if i+step >= len(parent.Content) {
			return nil, cannotEdit(n, unusual)
		}
		next := parent.Content[i+step]
		if parent.Kind == yaml.MappingNode {
			return e.removeBehindDash(first, n, next), nil
		}
		return e.splice(e.offset(first), e.offset(next), ""), nil
	}
	_, next := e.line(e.lastLine(&yaml.Node{Line: line, Content: []*yaml.Node{first, n}}, column-1))
	return e.splice(start, next, ""), nil
}

// dashLine returns the line with the dash of an item of a block list. The item's content may begin below this line.
func (e *editor) dashLine(list, item *yaml.Node) int {
	for line := item.Line; line > list.Line; line-- {
		text, _ := e.line(line)
		if before, _, ok := strings.Cut(text, "-"); ok && strings.TrimSpace(before) == "" && len(before) == list.Column-1 {
			return line
		}
	}
	return list.Line
}

// removeBehindDash removes the field that follows the dash of an item. The next field moves up to the dash, unless comments are between the
// two. Comments stay.
func (e *editor) removeBehindDash(key, value, next *yaml.Node) []byte {
	from, to := e.offset(key), e.offset(next)
	last := e.lastLine(&yaml.Node{Line: key.Line, Content: []*yaml.Node{key, value}}, key.Column-1)
	text, end := e.line(last)
	if end >= to || len(bytes.TrimSpace(e.src[end:to])) == 0 {
		return e.splice(from, to, "")
	}
	for from > 0 && e.src[from-1] == ' ' {
		from--
	}
	return e.splice(from, e.lines[min(last, len(e.lines))-1]+len(text), "")
}

// emptyList replaces the block list n, which has one item, by [] after its key in parent.
func (e *editor) emptyList(parent, n *yaml.Node) ([]byte, error) {
	if parent.Kind != yaml.MappingNode || n.Anchor != "" {
		return nil, cannotEdit(n, "the list has an anchor, or is an item itself")
	}
	key := parent.Content[slices.Index(parent.Content, n)-1]
	end, ok := e.scalarEnd(key)
	colon := bytes.IndexByte(e.src[end:], ':')
	if !ok || colon < 0 || key.Line == n.Line {
		return nil, cannotEdit(n, unusual)
	}
	_, next := e.line(e.lastLine(n, n.Column-1))
	cut := newEditor(e.splice(e.lines[n.Line-1], next, ""))
	return cut.splice(end+colon+1, end+colon+1, " []"), nil
}

// removeFromFlow removes a field or item from {…} or […], with the comma next to it. If the field or item has its own lines, it removes
// these lines, and keeps comments on other lines.
func (e *editor) removeFromFlow(parent, n *yaml.Node) ([]byte, error) {
	i, step := place(parent, n)
	from, end := e.offset(parent.Content[i]), e.flowItemEnd(n)
	if from > end {
		return nil, cannotEdit(n, unusual)
	}
	before := len(bytes.TrimRight(e.src[:from], " "))
	alone := before > 0 && e.src[before-1] == '\n'
	behind := len(e.src) - len(bytes.TrimLeft(e.src[end:], " \t\r\n"))
	comma := bytes.LastIndexByte(e.src[:from], ',')
	switch isLast := i+step >= len(parent.Content); {
	case behind < len(e.src) && e.src[behind] == ',' && (alone || !isLast):
		lineEnd := e.lineEnd(behind)
		switch {
		case !isLast && e.offset(parent.Content[i+step]) < lineEnd:
			return e.splice(from, e.offset(parent.Content[i+step]), ""), nil
		case alone:
			return e.splice(before, lineEnd, ""), nil
		}
		return e.splice(before, behind+1, ""), nil
	case i == 0:
		return e.splice(from, end, ""), nil
	case comma < 0:
		return nil, cannotEdit(n, unusual)
	case !alone:
		return e.splice(comma, end, ""), nil
	}
	lineEnd := e.lineEnd(end)
	if len(bytes.TrimSpace(e.src[end:lineEnd])) > 0 { // the line has other content
		return slices.Concat(e.src[:comma], e.src[comma+1:from], e.src[end:]), nil
	}
	return slices.Concat(e.src[:comma], e.src[comma+1:before], e.src[lineEnd:]), nil
}

// lineEnd returns the offset after the line that contains offset i.
func (e *editor) lineEnd(i int) int {
	if end := bytes.IndexByte(e.src[i:], '\n'); end >= 0 {
		return i + end + 1
	}
	return len(e.src)
}

// flowItemEnd returns the offset after the value n inside of {…} or […].
func (e *editor) flowItemEnd(n *yaml.Node) int {
	if end, ok := e.scalarEnd(n); ok && n.Kind == yaml.ScalarNode && !IsNull(n) {
		return end
	}
	start := e.offset(n)
	end := e.flowEnd(start)
	return start + len(bytes.TrimRight(e.src[start:end], " \t\r\n"))
}

// flowEnd returns the offset after the value that starts at i inside of {…} or […]: after its closing bracket, or else at the next comma or
// bracket. It may be wrong for unusual text; proveOnly then refuses the edit.
func (e *editor) flowEnd(i int) int {
	start, depth, quote := i, 0, byte(0)
	for ; i < len(e.src); i++ {
		c := e.src[i]
		begins := i == start || bytes.IndexByte([]byte(" \t\n[{,:"), e.src[i-1]) >= 0 // otherwise c is part of a word
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && begins:
			quote = c
		case c == '#' && begins:
			if end := bytes.IndexByte(e.src[i:], '\n'); end >= 0 {
				i += end
			}
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']' || c == ',') && depth == 0:
			return i
		case c == '}' || c == ']':
			if depth--; depth == 0 && (e.src[start] == '{' || e.src[start] == '[') {
				return i + 1
			}
		}
	}
	return min(i, len(e.src))
}

// without returns a copy of doc without the value at path.
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
