package yamledit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// editor changes the text of a YAML file at the places of its nodes.
type editor struct {
	src   []byte
	lines []int  // where each line starts
	eol   string // as the file has it
}

func newEditor(src []byte) *editor {
	e := &editor{src: src, lines: []int{0}, eol: "\n"}
	for i, c := range src {
		if c == '\n' {
			e.lines = append(e.lines, i+1)
		}
	}
	if bytes.Contains(src, []byte("\r\n")) {
		e.eol = "\r\n"
	}
	return e
}

// offset is where n starts in the text; columns count characters.
func (e *editor) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(e.lines) {
		return len(e.src)
	}
	at := e.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(e.src[at:])
		at += size
	}
	return at
}

// line is the text of line i (from 1) without its end, and where the next one starts. YAML knows more line ends than this, so i
// may lie beyond the last one; the proof fails then.
func (e *editor) line(i int) (text string, next int) {
	i = min(i, len(e.lines))
	next = len(e.src)
	if i < len(e.lines) {
		next = e.lines[i]
	}
	return strings.TrimRight(string(e.src[e.lines[i-1]:next]), "\r\n"), next
}

func (e *editor) splice(from, to int, text string) []byte {
	return slices.Concat(e.src[:from], []byte(text), e.src[to:])
}

// set puts value at path from root.
func (e *editor) set(root *yaml.Node, path Path, value *yaml.Node) ([]byte, error) {
	n, missing, err := walk(root, path)
	if err != nil {
		return nil, err
	}
	if IsNull(n) && len(path) == len(missing) {
		return nil, fmt.Errorf("%w: the document is empty", ErrCannotEdit)
	}
	if len(missing) == 0 {
		if IsNull(n) {
			parent, _, err := walk(root, path[:len(path)-1])
			if err != nil {
				return nil, err
			}
			return e.fillEmpty(parent, n, value)
		}
		if n.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("expected a single value in line %d, found %s", n.Line, Describe(n))
		}
		return e.replace(n, value)
	}
	field := value
	for _, s := range slices.Backward(missing) {
		outer := &yaml.Node{Kind: yaml.MappingNode}
		name, _ := s.(string) // walk leaves fields only
		addField(outer, name, field)
		field = outer
	}
	if IsNull(n) {
		parent, _, err := walk(root, path[:len(path)-len(missing)-1])
		if err != nil {
			return nil, err
		}
		return e.fillEmpty(parent, n, field)
	}
	return e.addField(n, field)
}

// replace writes value in the place of the scalar n, in the quotes that it has.
func (e *editor) replace(n, value *yaml.Node) ([]byte, error) {
	if n.Value == value.Value && n.ShortTag() == value.ShortTag() {
		return e.src, nil
	}
	start := e.offset(n)
	end, ok := e.scalarEnd(n)
	if !ok || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	if n.Style != 0 && value.ShortTag() == "!!str" { // quotes would make text of a number
		value.Style = n.Style
	}
	text, err := encodeFlow(value)
	return e.splice(start, end, text), err
}

// fillEmpty writes value behind the key of the empty value n of parent.
func (e *editor) fillEmpty(parent, n, value *yaml.Node) ([]byte, error) {
	if parent.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	key := parent.Content[slices.Index(parent.Content, n)-1]
	end, ok := e.scalarEnd(key)
	colon := bytes.IndexByte(e.src[end:], ':')
	if !ok || colon < 0 {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	from := end + colon + 1
	to := from
	if n.Value != "" { // null or ~
		to = e.offset(n) + len(n.Value)
	}
	if to < from || to > len(e.src) {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	if value.Kind == yaml.ScalarNode || parent.Style&yaml.FlowStyle != 0 {
		text, err := encodeFlow(value)
		return e.splice(from, to, " "+text), err
	}
	lines, err := Lines(value, key.Column+1)
	if err != nil {
		return nil, err
	}
	e = newEditor(e.splice(from, to, ""))
	return e.insertAfterLine(e.afterNotes(key.Line, key.Column-1), lines), nil
}

// addField writes the one field of field into mapping n: behind the short fields that n starts with, else at its end.
func (e *editor) addField(n, field *yaml.Node) ([]byte, error) {
	if n.Style&yaml.FlowStyle != 0 {
		text, err := encodeFlow(field)
		if err != nil {
			return nil, err
		}
		return e.addToFlow(n, padList(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"), field))
	}
	column := n.Content[0].Column
	lines, err := Lines(field, column-1)
	if err != nil {
		return nil, err
	}
	last := 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if _, oneLine := e.scalarEnd(value); !oneLine || key.Line != value.Line || value.Kind != yaml.ScalarNode || IsNull(value) {
			break
		}
		last = key.Line
	}
	if last == 0 {
		last = e.lastLine(n, column-1)
	}
	return e.insertAfterLine(e.afterNotes(last, column-1), lines), nil
}

// padList is text, which is field as encodeFlow has it, with spaces in the brackets of a list that field brings along: they tell RemoveItem
// that it was not there before.
func padList(text string, field *yaml.Node) string {
	for len(field.Content) > 0 && field.Kind == yaml.MappingNode {
		field = field.Content[1]
	}
	list, err := encodeFlow(field)
	if err != nil || field.Kind != yaml.SequenceNode {
		return text
	}
	return strings.Replace(text, list, "[ "+list[1:len(list)-1]+" ]", 1)
}

// appendToList writes item behind the last item of list n. An empty list, written [] behind its key of parent, opens up for it.
func (e *editor) appendToList(parent, n, item *yaml.Node) ([]byte, error) {
	if len(n.Content) == 0 && parent.Kind == yaml.MappingNode && parent.Style&yaml.FlowStyle == 0 {
		return e.openList(parent, n, item)
	}
	if n.Style&yaml.FlowStyle != 0 {
		text, err := encodeFlow(item)
		if err != nil {
			return nil, err
		}
		return e.addToFlow(n, text)
	}
	lines, err := Lines(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}, n.Column-1)
	if err != nil {
		return nil, err
	}
	return e.insertAfterLine(e.lastLine(n, n.Column-1), lines), nil
}

// openList writes item in the place of the empty list n, as a block below its key: with its dash under the key, which tells RemoveItem that
// it was there before.
func (e *editor) openList(parent, n, item *yaml.Node) ([]byte, error) {
	key := parent.Content[slices.Index(parent.Content, n)-1]
	from, to := e.offset(n), 0
	if closing := bytes.IndexByte(e.src[from:], ']'); closing >= 0 {
		to = from + closing + 1
	}
	if to == 0 || key.Line != n.Line || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	lines, err := Lines(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}, key.Column-1)
	if err != nil {
		return nil, err
	}
	for from > 0 && e.src[from-1] == ' ' {
		from--
	}
	rest := newEditor(e.splice(from, to, ""))
	return rest.insertAfterLine(rest.afterNotes(key.Line, key.Column-1), lines), nil
}

// afterNotes is the last of the comments behind line i that are indented by more than indent: they are about what stands in that line, and
// what is written between would be taken for it.
func (e *editor) afterNotes(i, indent int) int {
	last := i
	for i++; i <= len(e.lines); i++ {
		text, _ := e.line(i)
		trimmed := strings.TrimLeft(text, " ")
		switch {
		case trimmed == "":
		case trimmed[0] == '#' && len(text)-len(trimmed) > indent:
			last = i
		default:
			return last
		}
	}
	return last
}

// addToFlow writes text into {…} or […], behind its last item.
func (e *editor) addToFlow(n *yaml.Node, text string) ([]byte, error) {
	if len(n.Content) > 0 {
		end := e.flowItemEnd(n.Content[len(n.Content)-1])
		return e.splice(end, end, ", "+text), nil
	}
	start := e.offset(n)
	if start >= len(e.src) || e.src[start] != '{' && e.src[start] != '[' {
		return nil, fmt.Errorf("%w: line %d", ErrCannotEdit, n.Line)
	}
	return e.splice(start+1, start+1, text), nil
}

// insertAfterLine writes lines behind line i, which may be the last one and lack its end.
func (e *editor) insertAfterLine(i int, lines []string) []byte {
	_, next := e.line(i)
	text := strings.Join(lines, e.eol)
	if next == len(e.src) && !bytes.HasSuffix(e.src, []byte("\n")) {
		return e.splice(next, next, e.eol+text)
	}
	return e.splice(next, next, text+e.eol)
}

// lastLine is the last line of the block n whose keys or dashes are indented by indent: that of its last node, and all
// that is indented more behind it, such as the lines of a long text.
func (e *editor) lastLine(n *yaml.Node, indent int) int {
	last := deepestLine(n)
	for i := last + 1; i <= len(e.lines); i++ {
		text, _ := e.line(i)
		trimmed := strings.TrimLeft(text, " ")
		if trimmed == "" {
			continue // part of it only if something indented follows
		}
		if len(text)-len(trimmed) <= indent {
			break
		}
		last = i
	}
	return last
}

func deepestLine(n *yaml.Node) int {
	last := n.Line
	for _, inner := range n.Content {
		last = max(last, deepestLine(inner))
	}
	return last
}

// scalarEnd is where the text of scalar n ends; not ok if n goes over several lines.
func (e *editor) scalarEnd(n *yaml.Node) (end int, ok bool) {
	start := e.offset(n)
	text := e.src[start:]
	switch n.Style &^ yaml.FlowStyle {
	case yaml.DoubleQuotedStyle:
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '\n':
				return start, false
			case '"':
				return start + i + 1, true
			}
		}
	case yaml.SingleQuotedStyle:
		for i := 1; i < len(text); i++ {
			switch {
			case text[i] == '\n':
				return start, false
			case text[i] == '\'' && i+1 < len(text) && text[i+1] == '\'':
				i++
			case text[i] == '\'':
				return start + i + 1, true
			}
		}
	case 0:
		if bytes.HasPrefix(text, []byte(n.Value)) {
			return start + len(n.Value), true
		}
	}
	return start, false
}

// encodeFlow writes n on one line, as it can stand anywhere.
func encodeFlow(n *yaml.Node) (string, error) {
	setFlow(n)
	text, err := yaml.Marshal(n)
	return strings.TrimSuffix(string(text), "\n"), err
}

func setFlow(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style |= yaml.FlowStyle
	} else if n.Style == 0 && strings.ContainsAny(n.Value, ",[]{}") { // plain only outside of {…} and […]
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, inner := range n.Content {
		setFlow(inner)
	}
}

// Lines writes n as lines that are indented by indent.
func Lines(n *yaml.Node, indent int) ([]string, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", indent) + line
		}
	}
	return lines, nil
}
