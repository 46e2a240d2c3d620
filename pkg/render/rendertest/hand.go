package rendertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Note is the beginning of each comment that a hand writes. A unique number follows.
const Note = "# note-"

// hand writes YAML as people do: comments in odd places, several ways to quote and to indent, needless spaces. The zero value of a field is
// the plain style.
type hand struct {
	*rand.Rand
	notes *int // number of notes so far, in all files
	// aliases says that repeated values become aliases.
	aliases bool

	out     strings.Builder
	anchors map[string]string // by their texts
	text    bool              // the last line belongs to a block of text, which an indented line would continue
}

// chance returns true with this probability.
func (h *hand) chance(percent int) bool { return h.IntN(100) < percent }

// rewrite writes a YAML file in this hand. The result means the same as src.
func (h *hand) rewrite(src []byte) ([]byte, error) {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, document.Content[0])
	}
	h.out.Reset()
	h.notesAbove(0)
	for i, document := range documents {
		if i > 0 || h.chance(30) {
			h.out.WriteString("---")
			h.endOfLine()
		}
		h.anchors = map[string]string{}
		h.block(document, 0, true)
	}
	text := h.out.String()
	if h.chance(10) {
		text += "...\n"
	}
	if h.chance(20) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if cut := strings.TrimRight(text, "\r\n"); h.chance(20) && means(src, cut) { // a block of text may need its last line break
		text = cut
	}
	if !means(src, text) {
		return nil, fmt.Errorf("written by hand it means something else:\n%s\n-- instead of --\n%s", text, src)
	}
	return []byte(text), nil
}

// means tells whether a text means the same as src.
func means(src []byte, text string) bool {
	before, err := meaning(src)
	if err != nil {
		return false
	}
	after, err := meaning([]byte(text))
	return err == nil && reflect.DeepEqual(before, after)
}

func meaning(src []byte) ([]any, error) {
	var all []any
	for decoder := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
}

// note returns a comment that looks like YAML or has odd characters.
func (h *hand) note() string {
	*h.notes++
	more := []string{
		"", " it's here", ` says "no`, " key: value", " - {a: [b", " &a *a", " ---", " müßte gehen ✓",
		" " + strings.Repeat("long ", 40),
	}
	return fmt.Sprintf("%s%d%s", Note, *h.notes, more[h.IntN(len(more))])
}

// notesAbove writes comments and empty lines above a line that is indented by indent. Not all of them have this indentation.
func (h *hand) notesAbove(indent int) {
	defer func() { h.text = false }()
	if h.chance(8) {
		h.out.WriteString("\n")
	}
	for h.chance(10) {
		at := indent
		if !h.text && h.chance(25) {
			at = h.IntN(indent + 7)
		}
		h.out.WriteString(strings.Repeat(" ", at) + h.note() + "\n")
	}
}

// endOfLine may write a comment or trailing spaces.
func (h *hand) endOfLine() {
	switch {
	case h.chance(12):
		h.out.WriteString(strings.Repeat(" ", 1+h.IntN(4)) + h.note())
	case h.chance(3):
		h.out.WriteString("  ")
	}
	h.out.WriteString("\n")
}

// block writes a node whose lines are indented by indent. fresh is false after a dash, which has begun the first line already.
func (h *hand) block(n *yaml.Node, indent int, fresh bool) {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 || fresh {
				h.notesAbove(indent)
				h.out.WriteString(strings.Repeat(" ", indent))
			}
			h.out.WriteString(h.scalar(n.Content[i], true) + ":")
			h.value(n.Content[i+1], indent)
		}
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		for _, item := range n.Content {
			h.notesAbove(indent)
			h.item(item, indent)
		}
	default:
		h.out.WriteString(strings.Repeat(" ", indent) + h.flow(n, false))
		h.endOfLine()
	}
}

// item writes an item of a list whose dashes are indented by indent.
func (h *hand) item(n *yaml.Node, indent int) {
	h.out.WriteString(strings.Repeat(" ", indent) + "-")
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || h.isShort(n) && h.chance(25) {
		h.value(n, indent)
		return
	}
	gap := 1
	if h.chance(10) {
		gap = 3
	}
	h.out.WriteString(strings.Repeat(" ", gap))
	h.block(n, indent+1+gap, false)
}

// value writes the value after a key or a dash that is indented by indent, and ends the line.
func (h *hand) value(n *yaml.Node, indent int) {
	switch {
	case n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n"):
		h.out.WriteString(" |")
		if !strings.HasSuffix(n.Value, "\n") {
			h.out.WriteString("-")
		}
		h.endOfLine()
		for line := range strings.Lines(n.Value) {
			h.out.WriteString(strings.Repeat(" ", indent+4) + strings.TrimSuffix(line, "\n") + "\n")
		}
		h.text = true
	case n.Kind == yaml.ScalarNode:
		h.out.WriteString(" ")
		if h.chance(5) {
			h.out.WriteString(strings.Repeat(" ", 1+h.IntN(6)))
		}
		h.out.WriteString(h.named(n))
		h.endOfLine()
	case len(n.Content) > 0 && h.isShort(n) && h.chance(5):
		h.lines(n, indent+2)
	case len(n.Content) == 0, h.isShort(n) && h.chance(20):
		h.out.WriteString(" " + h.flow(n, false))
		h.endOfLine()
	default:
		h.endOfLine()
		step := 2
		switch {
		case n.Kind == yaml.SequenceNode && h.chance(50):
			step = 0
		case h.chance(10):
			step = 4
		}
		h.block(n, indent+step, true)
	}
}

// named returns a scalar, or the alias of an equal one before it.
func (h *hand) named(n *yaml.Node) string {
	text := h.scalar(n, false)
	if !h.aliases || n.ShortTag() != "!!str" || !h.chance(40) {
		return text
	}
	if name := h.anchors[n.Value]; name != "" {
		return "*" + name
	}
	name := fmt.Sprintf("a%d", len(h.anchors))
	h.anchors[n.Value] = name
	return "&" + name + " " + text
}

// isShort tells whether a person would write the node on one line.
func (h *hand) isShort(n *yaml.Node) bool {
	size := 0
	for _, inner := range n.Content {
		if inner.Kind != yaml.ScalarNode && len(inner.Content) > 4 || strings.Contains(inner.Value, "\n") {
			return false
		}
		for _, deep := range inner.Content {
			if deep.Kind != yaml.ScalarNode || strings.Contains(deep.Value, "\n") {
				return false
			}
		}
		size += len(inner.Value)
	}
	return size < 150
}

// flow returns a node on one line.
func (h *hand) flow(n *yaml.Node, inside bool) string {
	if n.Kind == yaml.ScalarNode {
		return h.scalar(n, inside)
	}
	parts := make([]string, 0, len(n.Content))
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			parts[len(parts)-1] += ": " + h.flow(inner, true)
			continue
		}
		parts = append(parts, h.flow(inner, true))
	}
	comma := ", "
	if h.chance(10) {
		comma = " ,  "
	}
	text, pad := strings.Join(parts, comma), ""
	if h.chance(20) && len(parts) > 0 {
		pad = " "
	}
	if n.Kind == yaml.MappingNode {
		return "{" + pad + text + pad + "}"
	}
	return "[" + pad + text + pad + "]"
}

// lines writes a node in brackets, with each item on its own line.
func (h *hand) lines(n *yaml.Node, indent int) {
	brackets, step := "[]", 1
	if n.Kind == yaml.MappingNode {
		brackets, step = "{}", 2
	}
	h.out.WriteString(" " + brackets[:1])
	h.endOfLine()
	for i := 0; i < len(n.Content); i += step {
		h.notesAbove(indent)
		h.out.WriteString(strings.Repeat(" ", indent))
		if step == 2 {
			h.out.WriteString(h.flow(n.Content[i], true) + ": ")
		}
		h.out.WriteString(h.flow(n.Content[i+step-1], true))
		if i+step < len(n.Content) || h.chance(50) {
			h.out.WriteString(",")
		}
		h.endOfLine()
	}
	h.out.WriteString(strings.Repeat(" ", indent) + brackets[1:])
	h.endOfLine()
}

// scalar returns a single value, quoted in one of the possible ways.
func (h *hand) scalar(n *yaml.Node, inside bool) string {
	if n.ShortTag() != "!!str" {
		return n.Value
	}
	plain := !inside || !strings.ContainsAny(n.Value, ",[]{}:")
	if encoded, err := yaml.Marshal(n.Value); err != nil || strings.TrimSuffix(string(encoded), "\n") != n.Value {
		plain = false
	}
	switch {
	case plain && !h.chance(10):
		return n.Value
	case h.chance(50):
		return "'" + strings.ReplaceAll(n.Value, "'", "''") + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(n.Value) + `"`
}
