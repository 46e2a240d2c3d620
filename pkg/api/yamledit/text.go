package yamledit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// editor changes the text of a YAML file at the positions of its nodes.
type editor struct {
	src   []byte
	lines []int  // offset of each line
	eol   string // the line end that the file uses
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

// offset returns the offset of n in the text. Columns count characters, not bytes.
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

// line returns the text of line i, counted from 1, without its line end, and the offset of the next line. YAML knows more line ends than
// this function, so i may be too large. The edit then fails in proveOnly.
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

// set writes value at path below root.
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
			return nil, inLine(n, fmt.Errorf("expected a single value, found %s", Describe(n)))
		}
		return e.replace(n, value)
	}
	field := value
	for _, s := range slices.Backward(missing) {
		outer := &yaml.Node{Kind: yaml.MappingNode}
		name, _ := s.(string) // walk returns only fields
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

// replace replaces the scalar n by value, and keeps its quotes.
func (e *editor) replace(n, value *yaml.Node) ([]byte, error) {
	if n.Value == value.Value && n.ShortTag() == value.ShortTag() {
		return e.src, nil
	}
	start := e.offset(n)
	end, ok := e.scalarEnd(n)
	switch {
	case n.Anchor != "":
		return nil, cannotEdit(n, "the value has an anchor, which other values may use")
	case n.Style&yaml.TaggedStyle != 0:
		return nil, cannotEdit(n, "the value has a tag")
	case !ok:
		return nil, cannotEdit(n, "the value has several lines")
	}
	if n.Style != 0 && value.ShortTag() == "!!str" { // a quoted number would become text
		value.Style = n.Style
	}
	text, err := encodeFlow(value)
	return e.splice(start, end, text), err
}

// fillEmpty writes value after the key of the empty value n in parent.
func (e *editor) fillEmpty(parent, n, value *yaml.Node) ([]byte, error) {
	if parent.Kind != yaml.MappingNode {
		return nil, cannotEdit(n, "an item of the list is empty")
	}
	key := parent.Content[slices.Index(parent.Content, n)-1]
	end, ok := e.scalarEnd(key)
	colon := bytes.IndexByte(e.src[end:], ':')
	if !ok || colon < 0 {
		return nil, cannotEdit(n, unusual)
	}
	from := end + colon + 1
	to := from
	if n.Value != "" { // null or ~
		to = e.offset(n) + len(n.Value)
	}
	if to < from || to > len(e.src) {
		return nil, cannotEdit(n, unusual)
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

// addField writes the single field of the mapping field into mapping n: after the one-line fields at the start of n, or else at its end.
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

// padList returns text, the encoded field, with spaces inside the brackets of a new list. The spaces tell RemoveItem that the list was
// added together with its item.
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

// appendToList writes item after the last item of list n. It turns an empty list, written [] after its key in parent, into a block.
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
	n = e.atDash(n)
	lines, err := Lines(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}, n.Column-1)
	if err != nil {
		return nil, err
	}
	return e.insertAfterLine(e.lastLine(n, n.Column-1), lines), nil
}

// atDash returns the block list n with the place of its first dash. The parser gives a list with an anchor or a tag the place of that.
func (e *editor) atDash(n *yaml.Node) *yaml.Node {
	if n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 || len(n.Content) == 0 {
		return n
	}
	for line := n.Line + 1; line <= n.Content[0].Line; line++ {
		text, _ := e.line(line)
		if trimmed := strings.TrimLeft(text, " "); strings.HasPrefix(trimmed, "-") {
			moved := *n
			moved.Line, moved.Column = line, len(text)-len(trimmed)+1
			return &moved
		}
	}
	return n
}

// openList replaces the empty list n by a block with item below the key. The dash has the column of the key. This tells RemoveItem that the
// list existed before its item.
func (e *editor) openList(parent, n, item *yaml.Node) ([]byte, error) {
	key := parent.Content[slices.Index(parent.Content, n)-1]
	from, to := e.offset(n), 0
	if closing := bytes.IndexByte(e.src[from:], ']'); closing >= 0 {
		to = from + closing + 1
	}
	if to == 0 || key.Line != n.Line || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return nil, cannotEdit(n, unusual)
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

// afterNotes returns the last line of the comments after line i that are indented by more than indent. Such comments belong to line i. They
// would seem to belong to text that is inserted before them.
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

// addToFlow writes text after the last item of {…} or […].
func (e *editor) addToFlow(n *yaml.Node, text string) ([]byte, error) {
	if len(n.Content) > 0 {
		end := e.flowItemEnd(n.Content[len(n.Content)-1])
		return e.splice(end, end, ", "+text), nil
	}
	start := e.offset(n)
	if start >= len(e.src) || e.src[start] != '{' && e.src[start] != '[' {
		return nil, cannotEdit(n, unusual)
	}
	return e.splice(start+1, start+1, text), nil
}

// insertAfterLine writes lines after line i. Line i may be the last one, and may lack its line end.
func (e *editor) insertAfterLine(i int, lines []string) []byte {
	_, next := e.line(i)
	text := strings.Join(lines, e.eol)
	if next == len(e.src) && !bytes.HasSuffix(e.src, []byte("\n")) {
		return e.splice(next, next, e.eol+text)
	}
	return e.splice(next, next, text+e.eol)
}

// lastLine returns the last line of the block n, whose keys or dashes are indented by indent. It is the line of the last node, or the last
// of the lines after it that are indented more, such as the lines of a long text.
func (e *editor) lastLine(n *yaml.Node, indent int) int {
	last := deepestLine(n)
	for i := last + 1; i <= len(e.lines); i++ {
		text, _ := e.line(i)
		trimmed := strings.TrimLeft(text, " ")
		if trimmed == "" {
			continue // belongs to the block only if an indented line follows
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

// scalarEnd returns the offset after the text of scalar n. It returns false if n spans several lines.
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

// encodeFlow encodes n on one line, in a form that is valid in blocks and inside of {…} and […].
func encodeFlow(n *yaml.Node) (string, error) {
	setFlow(n)
	text, err := yaml.Marshal(n)
	return strings.TrimSuffix(string(text), "\n"), err
}

func setFlow(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style |= yaml.FlowStyle
	} else if n.Style == 0 && strings.ContainsAny(n.Value, ",[]{}") { // inside of {…} and […], such text needs quotes
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, inner := range n.Content {
		setFlow(inner)
	}
}

// Lines encodes n as lines with an indentation of indent spaces.
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
