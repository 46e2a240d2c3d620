package clustertemplate

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// document is a document of the template, with tokens for its variables.
type document struct {
	text string
	// line is the first line of the document in the template.
	line       int
	node       *yaml.Node
	kind, name string
	group      string
	// plains are the scalars that the chart writes in another way.
	plains []scalar
	// lines are the lines of the text. For a line that is not ASCII, they have the offset of each character.
	lines   []string
	offsets map[int][]int
	// indents are the indentations of lines with variables, by the number of the variable's part.
	indents map[int]int
}

// scalar is a plain one on one line that holds variables.
type scalar struct {
	line, column int // in the document, from 1; the column counts characters
	text         string
	parts        []int
	key          bool
}

// separator is the line that begins a document.
var separator = regexp.MustCompile(`^---(\s|$)`)

// documents returns the documents of the template that the chart has.
func (t *translation) documents() []*document {
	var all []*document
	begin := 0
	lines := strings.SplitAfter(t.text, "\n")
	take := func(end int) {
		d := newDocument(strings.Join(lines[begin:end], ""), begin+1)
		begin = end + 1
		if t.open(d, len(all)+1) {
			all = append(all, d)
		}
	}
	for i, line := range lines {
		if separator.MatchString(line) {
			if rest := strings.TrimSpace(line[3:]); rest != "" && !strings.HasPrefix(rest, "#") {
				t.fault(i+1, "begin the document on the next line", "there is something beside ---")
			}
			take(i)
		}
	}
	take(len(lines))
	if len(all) == 0 && len(t.findings) == 0 {
		t.fault(1, "", "the template has no objects")
	}
	return all
}

func newDocument(text string, line int) *document {
	return &document{text: text, line: line, lines: strings.Split(text, "\n"), offsets: map[int][]int{}, indents: map[int]int{}}
}

// open reads a document, and tells whether the chart has it.
func (t *translation) open(d *document, number int) bool {
	nodes, err := yamledit.Parse([]byte(d.text))
	if err != nil {
		if t.fragments(d) {
			return false
		}
		line, _, message := yamledit.Place([]byte(d.text), err)
		t.fault(d.line+max(line, 1)-1, "it has to be YAML if a word replaces each variable", "this is no YAML: %s", t.original(message))
		return false
	}
	if len(nodes) == 0 || nodes[0].Kind == yaml.ScalarNode && nodes[0].Tag == "!!null" {
		return false
	}
	d.node = nodes[0]
	version := scalarText(yamledit.Find(d.node, "apiVersion"))
	d.kind, d.name = scalarText(yamledit.Find(d.node, "kind")), scalarText(yamledit.Find(d.node, "metadata", "name"))
	d.group, _, _ = strings.Cut(version, "/")
	if t.hidden(d) {
		return false
	}
	switch {
	case len(nodes) > 1 || d.node.Kind != yaml.MappingNode || version == "" || d.kind == "":
		t.fault(d.line+d.node.Line-1, "each document is an object of Kubernetes, with apiVersion and kind", "this is no object of Kubernetes")
		return false
	case version == "v1" && d.kind == "List", strings.HasSuffix(d.kind, "List") && isList(d.node):
		t.fault(d.line+d.node.Line-1, "write its items as documents of their own, with --- between them",
			"a chart takes objects one by one, no List")
		return false
	case version == "v1" && d.kind == "Secret":
		t.secrets = append(t.secrets, Secret{Name: t.original(d.name), Line: d.line + d.node.Line - 1})
		return false
	case version == "v1" && d.kind == "Namespace": // clusterctl makes it that of the cluster, which the fleet has already
		return false
	}
	if !t.leaveNamespace(d) {
		return false
	}
	t.measure(d)
	t.place(d, number, d.node, "", false, false)
	t.misplaced(d, number)
	return true
}

// leaveNamespace takes the namespace out of the object, which then goes into that of the release, and reports whether it could. clusterctl,
// too, writes the namespace of the cluster into each object, whatever the template says. The lines of the document keep their numbers.
func (t *translation) leaveNamespace(d *document) bool {
	at := yamledit.Path{"metadata", "namespace"}
	namespace := yamledit.Find(d.node, at...)
	if namespace == nil {
		return true
	}
	text := scalarText(namespace)
	if parts := t.partsOf(text); len(parts) == 1 && text == t.tokenOf(parts[0]) && t.isReserved(t.parts[parts[0]].use) {
		return true
	}
	left, err := yamledit.Remove([]byte(d.text), 0, at)
	lines := strings.Split(string(left), "\n")
	for gone := len(d.lines) - len(lines); gone > 0; gone-- {
		lines = slices.Insert(lines, min(namespace.Line-1, len(lines)), "")
	}
	var nodes []*yaml.Node
	if err == nil {
		nodes, err = yamledit.Parse([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		t.fault(d.line+namespace.Line-1, "leave it out, or write ${NAMESPACE}", "the object is in the namespace %s: each cluster of the "+
			"fleet has its own", t.original(text))
		return false
	}
	d.text, d.lines, d.node = strings.Join(lines, "\n"), lines, nodes[0]
	return true
}

// fragments finds the variables that stand for whole lines of YAML, and tells whether the document is YAML but for them. A chart has no
// value for these: their fields are nowhere in the template, so nothing could be said of what they make.
func (t *translation) fragments(d *document) bool {
	kept := slices.Clone(d.lines)
	alone := map[int]int{}
	for i, line := range d.lines {
		text := strings.TrimSpace(line)
		if parts := t.partsOf(text); len(parts) == 1 && text == t.tokenOf(parts[0]) {
			alone[i], kept[i] = parts[0], ""
		}
	}
	if len(alone) == 0 {
		return false
	}
	if _, err := yamledit.Parse([]byte(strings.Join(kept, "\n"))); err != nil {
		return false
	}
	for _, i := range slices.Sorted(maps.Keys(alone)) {
		t.fault(d.line+i, "write these lines in its place; or remove it from the template, and add what you need to the chart",
			"%s stands for lines of YAML, which no value of a chart does", source(t.parts[alone[i]].use.node))
	}
	return true
}

// hidden finds what would keep it from being plain what an object is: nobody could tell which one is a Secret.
func (t *translation) hidden(d *document) bool {
	if d.node.Kind != yaml.MappingNode {
		return false
	}
	before := len(t.findings)
	seen := map[string]bool{}
	for i := 0; i+1 < len(d.node.Content); i += 2 {
		key, value := d.node.Content[i], yamledit.Resolve(d.node.Content[i+1])
		line, says := d.line+key.Line-1, key.Value == "apiVersion" || key.Value == "kind"
		switch {
		case key.ShortTag() != "!!str" || len(t.partsOf(key.Value)) > 0:
			t.fault(line, "write the name of the field out", "a field of the object has no plain name: whether it is a Secret has to be plain")
		case seen[key.Value]:
			t.fault(line, "keep one of them", "the object has the field %s twice", key.Value)
		case says && len(t.partsOf(scalarText(value))) > 0:
			t.fault(line, "write it out", "%s has a variable, %s: whether the object is a Secret has to be plain", key.Value,
				t.original(value.Value))
		case says && value.ShortTag() != "!!str":
			t.fault(line, "write it out", "%s is no text: whether the object is a Secret has to be plain", key.Value)
		}
		seen[key.Value] = true
	}
	return len(t.findings) > before
}

// isList tells of an object that has others in it.
func isList(n *yaml.Node) bool {
	items := yamledit.Find(n, "items")
	return items != nil && items.Kind == yaml.SequenceNode
}

func scalarText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// place finds out what the variables of a document stand in.
func (t *translation) place(d *document, number int, n *yaml.Node, field string, flow, key bool) {
	switch n.Kind {
	case yaml.MappingNode:
		flow = flow || n.Style&yaml.FlowStyle != 0
		for i := 0; i+1 < len(n.Content); i += 2 {
			t.place(d, number, n.Content[i], "", flow, true)
			t.place(d, number, n.Content[i+1], n.Content[i].Value, flow, false)
		}
	case yaml.SequenceNode, yaml.DocumentNode:
		flow = flow || n.Style&yaml.FlowStyle != 0
		for _, inner := range n.Content {
			t.place(d, number, inner, field, flow, false)
		}
	case yaml.ScalarNode:
		t.placeScalar(d, number, n, field, flow, key)
	}
}

func (t *translation) placeScalar(d *document, number int, n *yaml.Node, field string, flow, key bool) {
	found := t.partsOf(n.Value)
	if len(found) == 0 {
		return
	}
	at := inPlain
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		at = inDoubleQuotes
	case n.Style&yaml.SingleQuotedStyle != 0:
		at = inSingleQuotes
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		at = inBlock
	case !d.beginsAt(n):
		at = inLines
	}
	for _, i := range found {
		u := t.parts[i].use
		u.at, u.field, u.flow, u.document = at, field, flow, number
		u.whole = at == inPlain && !key && n.Value == t.tokenOf(i)
		if at == inBlock {
			u.indent = d.indents[i]
		}
	}
	if at == inPlain {
		d.plains = append(d.plains, scalar{line: n.Line, column: n.Column, text: n.Value, parts: found, key: key})
	}
}

// beginsAt tells whether a scalar stands at its place as it is: on one line, without a tag or an anchor.
func (d *document) beginsAt(n *yaml.Node) bool {
	if n.Line < 1 || n.Line > len(d.lines) {
		return false
	}
	at := d.offset(n.Line, n.Column)
	return at >= 0 && strings.HasPrefix(d.lines[n.Line-1][at:], n.Value)
}

// offset returns the byte at which a column, counted in characters, begins in its line; -1 if the line has no such column.
func (d *document) offset(line, column int) int {
	text := d.lines[line-1]
	offsets, ok := d.offsets[line]
	if !ok {
		if utf8.RuneCountInString(text) < len(text) {
			for i := range text {
				offsets = append(offsets, i)
			}
		}
		d.offsets[line] = offsets
	}
	switch {
	case offsets == nil && column >= 1 && column <= len(text):
		return column - 1
	case offsets != nil && column >= 1 && column <= len(offsets):
		return offsets[column-1]
	}
	return -1
}

// maxIndent bounds the indentation of a variable in a block: it is written for each.
const maxIndent = 256

// measure finds the indentation of the line of each variable of a document.
func (t *translation) measure(d *document) {
	for i, line := range d.lines {
		found := t.partsOf(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if len(found) > 0 && indent > maxIndent {
			t.fault(d.line+i, "begin the line further to the left", "the line begins with %s", plain.Count(indent, "space"))
		}
		for _, part := range found {
			d.indents[part] = min(indent, maxIndent)
		}
	}
}

// partsOf are the variables whose tokens are in a text.
func (t *translation) partsOf(text string) []int {
	var all []int
	for _, m := range t.tokenPattern.FindAllStringSubmatch(text, -1) {
		if i, err := strconv.Atoi(m[1]); err == nil {
			all = append(all, i)
		}
	}
	return all
}

// original writes a text with tokens as the template has it.
func (t *translation) original(text string) string {
	return t.tokenPattern.ReplaceAllStringFunc(text, func(token string) string {
		i := t.partsOf(token)
		return source(t.parts[i[0]].use.node)
	})
}

// misplaced finds variables that are neither in a value nor in a comment: in an anchor, or a tag.
func (t *translation) misplaced(d *document, number int) {
	for i, line := range d.lines {
		comment := strings.IndexByte(line, '#')
		for _, m := range t.tokenPattern.FindAllStringIndex(line, -1) {
			part := t.partsOf(line[m[0]:m[1]])[0]
			if u := t.parts[part].use; u.document != number && (comment < 0 || comment > m[0]) {
				t.fault(d.line+i, "write it out", "%s stands where YAML has no value: in a tag or an anchor", source(u.node))
			}
		}
	}
}

// placed returns the uses of variables that the chart has.
func (v *variable) placed() []*use {
	return slices.DeleteFunc(slices.Clone(v.uses), func(u *use) bool {
		for u.outer != nil {
			u = u.outer
		}
		return u.document == 0
	})
}

// rewrite puts a token of its own in the place of each scalar that is written anew.
func (t *translation) rewrite(d *document) string {
	slices.SortFunc(d.plains, func(a, b scalar) int { return cmp.Or(a.line-b.line, a.column-b.column) })
	var out strings.Builder
	line, at := 1, 0 // what is written up to here
	for _, s := range d.plains {
		for ; line < s.line; line, at = line+1, 0 {
			out.WriteString(d.lines[line-1][at:] + "\n")
		}
		begin := d.offset(s.line, s.column)
		fmt.Fprintf(&out, "%s%ss%dx", d.lines[line-1][at:begin], t.token, len(t.whole))
		at = begin + len(s.text)
		t.whole = append(t.whole, s)
	}
	for ; line <= len(d.lines); line, at = line+1, 0 {
		out.WriteString(d.lines[line-1][at:])
		if line < len(d.lines) {
			out.WriteString("\n")
		}
	}
	return out.String()
}
