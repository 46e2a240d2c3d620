package yamledit

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetText is Set for a text of several lines. A literal block, such as the files in a ConfigMap, stays one: only its lines are others. Its
// last line ends as before. The errors are those of Set.
func SetText(src []byte, document int, path Path, text string) ([]byte, error) {
	root, err := top(src, document, path)
	if err != nil {
		return nil, err
	}
	n, missing, err := walk(root, path)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 || n.Kind != yaml.ScalarNode || n.Style&yaml.LiteralStyle == 0 {
		return Set(src, document, path, text)
	}
	if strings.TrimSpace(n.Value) == "" {
		return nil, cannotEdit(n, "the text is empty")
	}
	body := strings.TrimRight(n.Value, "\n")
	text = strings.TrimRight(text, "\n") + n.Value[len(body):]
	changed := newEditor(src).replaceBlock(n, strings.Split(strings.TrimRight(text, "\n"), "\n"))
	return changed, proveOnly(src, changed, document, path, func(before any) any { return withValue(before, path, text) })
}

// replaceBlock replaces the lines of the literal block n, which is not empty. Empty lines after the block stay.
func (e *editor) replaceBlock(n *yaml.Node, lines []string) []byte {
	last, indent := n.Line, 0
	for i := n.Line + 1; i <= len(e.lines); i++ {
		text, _ := e.line(i)
		trimmed := strings.TrimLeft(text, " ")
		if trimmed == "" {
			continue // belongs to the block only if an indented line follows
		}
		if indent == 0 {
			indent = len(text) - len(trimmed)
		}
		if len(text)-len(trimmed) < indent {
			break
		}
		last = i
	}
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", indent) + line
		}
	}
	_, from := e.line(n.Line)
	text, _ := e.line(last)
	return e.splice(from, max(from, e.lines[last-1]+len(text)), strings.Join(lines, e.eol))
}
