package clustertemplate

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/drone/envsubst/v2/parse"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// part is a piece of a template: text, or the use of a variable.
type part struct {
	text string
	use  *use
}

// use is one place where a variable is used.
type use struct {
	node *parse.FuncNode
	line int
	// at is the kind of the surrounding YAML. place sets it.
	at position
	// indent is the indentation of the surrounding block scalar.
	indent int
	// field is the name of the field with the use in its value. flow tells whether the field is in brackets.
	field string
	flow  bool
	// whole tells whether the use is the whole of a plain scalar, and the scalar is a value.
	whole bool
	// outer is the use whose braces contain this use; nil for most.
	outer *use
	// depth is the number of surrounding uses.
	depth int
	// document is the number of the document, from 1; 0 if the chart leaves the document out.
	document int
}

// position is the kind of YAML around a variable.
type position int

const (
	inComment position = iota
	inPlain
	inDoubleQuotes
	inSingleQuotes
	inBlock
	inLines // a plain scalar of several lines
)

// variable is a variable of a template.
type variable struct {
	name string
	uses []*use
	// value is the path of the chart's value, "" for what Helm knows itself; see reserved.
	value string
	// inline says that each use has its own default.
	inline bool
	// raw says that it is written as it is, and what YAML takes it for is what it is.
	raw   bool
	types []string
}

// legacy are the spellings with spaces that clusterctl takes as well.
var legacy = regexp.MustCompile(`\$\{[ \t]*([A-Za-z0-9_$]+)[ \t]*\}`)

// read splits a template into its parts.
func (t *translation) read(content []byte) {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	switch {
	case len(content) > yamledit.MaxBytes:
		t.fault(1, "", "the template is larger than %d KiB", yamledit.MaxBytes>>10)
	case !utf8.ValidString(text):
		t.fault(1, "", "the template is not UTF-8 text")
	case strings.ContainsRune(text, 0):
		t.fault(1+strings.Count(text[:strings.IndexByte(text, 0)], "\n"), "", "the template has a NUL character")
	case strings.TrimSpace(text) == "":
		t.fault(1, "", "the template is empty")
	}
	if len(t.findings) == 0 {
		t.checkEscapes(text)
	}
	if len(t.findings) > 0 {
		return
	}
	text = legacy.ReplaceAllString(text, "$${$1}")
	tree, err := parse.Parse(text)
	if err != nil {
		t.fault(t.brokenLine(text), "clusterctl takes ${VAR}, ${VAR:=default} and $${ for the text ${", "clusterctl could not read this: %v", err)
		return
	}
	t.collect(tree.Root, 1)
	t.tokens()
}

// maxEscapes bounds what clusterctl's parser takes out of the text: it copies all of the rest for each.
const maxEscapes = 4096

// checkEscapes makes sure that the parser has an end in sight.
func (t *translation) checkEscapes(text string) {
	count, line := 0, 1
	for i := 0; i+1 < len(text); i++ {
		switch two := text[i : i+2]; {
		case text[i] == '\n':
			line++
			continue
		case two != "$$" && two != `\/` && two != `\\`:
			continue
		}
		i++
		if count++; count > maxEscapes {
			t.fault(line, "", "the template has more than %d escapes, such as $$", maxEscapes)
			return
		}
	}
}

// brokenLine is the first line that clusterctl's parser cannot read: it does not say itself.
func (*translation) brokenLine(text string) int {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if _, err := parse.Parse(line); err != nil {
			return i + 1
		}
	}
	return 1
}

// collect walks the tree and returns the line that it ends in.
func (t *translation) collect(n parse.Node, line int) int {
	for {
		switch node := n.(type) {
		case *parse.TextNode:
			t.parts = append(t.parts, part{text: node.Value})
			return line + strings.Count(node.Value, "\n")
		case *parse.FuncNode:
			u := &use{node: node, line: line}
			t.parts = append(t.parts, part{use: u})
			t.remember(node.Param, u)
			return line + t.inner(u)
		case *parse.ListNode:
			if len(node.Nodes) == 0 {
				return line
			}
			for _, inner := range node.Nodes[:len(node.Nodes)-1] {
				line = t.collect(inner, line)
			}
			n = node.Nodes[len(node.Nodes)-1] // each piece of a template is a level deeper
		default:
			return line
		}
	}
}

// maxInner bounds the variables that stand in each other's braces: each is written once more for all that it stands in.
const maxInner = 16

// inner looks at what stands in the braces of a variable, and returns how many lines it goes over.
func (t *translation) inner(u *use) int {
	node, line := u.node, u.line
	if err := translatable(node); err != nil {
		t.fault(line, "write the value where it is used, or remove it", "${%s}: %v", node.Param, err)
		return 0
	}
	if u.depth > maxInner {
		t.fault(line, "write the value where it is used", "${%s}: more than %d variables stand in the braces of each other", node.Param, maxInner)
		return 0
	}
	lines := 0
	for _, arg := range node.Args {
		switch a := arg.(type) {
		case *parse.TextNode:
			lines += strings.Count(a.Value, "\n")
		case *parse.FuncNode:
			nested := &use{node: a, line: line, outer: u, depth: u.depth + 1}
			t.remember(a.Param, nested)
			lines += t.inner(nested)
		}
	}
	if lines > 0 {
		t.fault(line, "write it on one line", "${%s}: what stands in its braces goes over %s", node.Param, plain.Count(lines+1, "line"))
	}
	return lines
}

// identifier matches the names of environment variables.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (t *translation) remember(name string, u *use) {
	if !identifier.MatchString(name) {
		t.fault(u.line, "letters of ASCII, digits and _; no digit first", "%q is no name of a variable", name)
		return
	}
	v := t.byName[name]
	if v == nil {
		v = &variable{name: name}
		t.named, t.byName[name] = append(t.named, v), v
	}
	v.uses = append(v.uses, u)
}

// variable is nil for a name that the template does not have.
func (t *translation) variable(name string) *variable { return t.byName[name] }

// tokens makes a text that is YAML where the template will be: each variable is a plain word.
func (t *translation) tokens() {
	t.token = t.unusedToken()
	t.tokenPattern, t.anyToken = regexp.MustCompile(t.token+`([0-9]+)x`), regexp.MustCompile(t.token+`(s?)([0-9]+)x`)
	var b strings.Builder
	for i, p := range t.parts {
		if p.use == nil {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(t.tokenOf(i))
	}
	t.text = b.String()
}

// unusedToken is a word that is nowhere in the template. Each place where the template has the beginning of one rules out one end at most,
// and there are more ends than a template has room for such places.
func (t *translation) unusedToken() string {
	const begin, letters, ends = "xfleetvar", 4, 26 * 26 * 26 * 26
	used := map[string]bool{}
	for _, p := range t.parts {
		for rest := p.text; ; {
			_, after, found := strings.Cut(rest, begin)
			if !found {
				break
			}
			used[after[:min(letters, len(after))]] = true
			rest = after
		}
	}
	for i := range ends {
		end := string([]byte{'a' + byte(i/17576), 'a' + byte(i/676%26), 'a' + byte(i/26%26), 'a' + byte(i%26)})
		if !used[end] {
			return begin + end
		}
	}
	return begin // not reached: a template is far smaller than all ends together
}

// tokenOf stands for the part i.
func (t *translation) tokenOf(i int) string { return fmt.Sprintf("%s%dx", t.token, i) }

// translatable returns an error for what Helm cannot say, or not so that it means the same.
func translatable(n *parse.FuncNode) error {
	literal := func(i int) (string, bool) {
		if i >= len(n.Args) {
			return "", true
		}
		text, ok := n.Args[i].(*parse.TextNode)
		if !ok {
			return "", false
		}
		return text.Value, true
	}
	switch n.Name {
	case "", "=", ":=", ":-", ",,", "^^":
		return nil
	case "#":
		if len(n.Args) == 0 {
			return nil
		}
		fallthrough
	case "##", "%", "%%":
		if text, ok := literal(0); ok && !strings.ContainsAny(text, `*?[]\`) {
			return nil
		}
		return errors.New("a chart can cut off a fixed text, no pattern")
	case "//":
		from, ok := literal(0)
		if _, also := literal(1); ok && also && from != "" {
			return nil
		}
		return errors.New("a chart can replace a fixed text by another one only")
	case ":?", ":+", "-", "+", "?":
		return fmt.Errorf("clusterctl takes what stands after %s for a default, and shells do not: a chart will not guess which is meant", n.Name)
	case ":":
		return errors.New("a chart cannot take a part of a value by its position")
	}
	return fmt.Errorf("a chart has no function %s", n.Name)
}
