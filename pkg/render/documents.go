package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render/internal/codec"
)

// document is one document of a YAML file. line is the line at which its text begins.
type document struct {
	text []byte
	line int
}

// split splits a YAML stream at its separators.
func split(src []byte) []document {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	var all []document
	start, first, line := 0, 1, 0
	for at := 0; at < len(src); {
		line++
		end := len(src)
		if i := bytes.IndexByte(src[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if isSeparator(src[at:end]) {
			all = append(all, document{src[start:at], first})
			start, first = at+3, line // the text after the separator belongs to the document
			if rest := bytes.TrimLeft(src[start:end], " \t"); len(rest) == 0 || strings.ContainsRune("#\r\n", rune(rest[0])) {
				start = end - len(rest) // no document begins with a tab, but the line of a separator may end in one
			}
		}
		at = end
	}
	return append(all, document{src[start:], first})
}

func isSeparator(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && (len(line) == 3 || strings.ContainsRune(" \t\r\n", rune(line[3])))
}

// start returns the first line of the document that is not a comment. It returns false if there is none.
func (d document) start() (int, bool) {
	line := d.line
	for text := range bytes.Lines(d.text) {
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' {
			return line, true
		}
		line++
	}
	return 0, false
}

// parse returns the objects of a YAML stream, with the items of lists and without empty documents. Each faulty document is a finding, and
// parse returns the objects of the others.
func parse(file string, src []byte) ([]*content, diag.Findings) {
	if findings := Screen(file, src); findings != nil {
		return nil, findings
	}
	var all []*content
	var findings diag.Findings
	for _, d := range split(src) {
		line, ok := d.start()
		if !ok {
			continue
		}
		objects, err := d.objects()
		if err != nil {
			f := syntaxFinding(RuleSyntax, file, d.text, err)
			if f.Line > 0 {
				f.Line += d.line - 1
			} else {
				f.Line = line
			}
			findings = append(findings, f)
			continue
		}
		for _, c := range objects {
			c.source = Source{file, line}
		}
		all = append(all, objects...)
	}
	return all, findings
}

// objects of one document.
func (d document) objects() ([]*content, error) {
	if n := codec.ReadBlock(d.text); n != nil {
		if c := contentIn(n); c != nil {
			return c.flatten()
		}
	}
	text, err := toJSON(d.text)
	if err != nil || bytes.Equal(text, []byte("null")) {
		return nil, err
	}
	c, err := newContent(text)
	if err != nil {
		return nil, err
	}
	return c.flatten()
}

// toJSON converts a YAML document to canonical JSON. It turns a panic of the decoder on invalid YAML into an error.
func toJSON(text []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not valid YAML: %v", p)
		}
	}()
	return yaml.YAMLToJSONStrict(text)
}

func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// flatten returns the items of a list, or the object itself.
func (c *content) flatten() ([]*content, error) {
	if !isList(c.Kind) || c.Metadata.Name != "" {
		return []*content{c}, nil
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(c.json, &list); err != nil {
		return nil, err
	}
	var all []*content
	for _, item := range list.Items {
		inner, err := newContent(item)
		if err != nil {
			return nil, err
		}
		flat, err := inner.flatten()
		if err != nil {
			return nil, err
		}
		all = append(all, flat...)
	}
	return all, nil
}

// contentIn returns the object of a document that codec has read. It returns nil if the document is no object, or if that needs the slower
// way to decide.
func contentIn(n *codec.Node) *content {
	c := &content{}
	c.APIVersion, c.Kind = n.Text("apiVersion"), n.Text("kind")
	if metadata := n.Field("metadata"); metadata != nil {
		c.Metadata.Name, c.Metadata.Namespace = metadata.Text("name"), metadata.Text("namespace")
		if c.Metadata.Namespace == "" && metadata.Field("namespace") != nil {
			return nil
		}
	}
	if c.APIVersion == "" || c.Kind == "" || c.Metadata.Name == "" {
		return nil
	}
	c.json = n.AppendJSON(nil)
	return c
}
