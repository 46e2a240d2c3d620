package validate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const (
	// maxExpanded is how many nodes the aliases of a file may add to the nodes that are written in it.
	maxExpanded = 100_000
	maxDepth    = 100
)

// screen is the first to read a YAML file. It reports syntax errors, duplicate keys, and aliases that would expand beyond the memory of the
// machine. It returns no documents if another YAML parser would fail on the file.
func screen(name string, content []byte) ([]*document, diag.Findings) {
	if !utf8.Valid(content) {
		return nil, diag.Findings{finding(RuleSyntax, name, 1, 1, "file is not UTF-8 text", "save it as UTF-8")}
	}
	var documents []*document
	var findings diag.Findings
	s := &screener{file: name, budget: maxExpanded}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for index := 0; ; index++ {
		var top yaml.Node
		err := decoder.Decode(&top)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, append(findings, syntaxFinding(name, content, err))
		}
		node := top.Content[0]
		if !s.measure(node, false, 0) {
			return nil, append(findings, finding(RuleLimit, name, node.Line, node.Column,
				"file is too large or too deep once its aliases are expanded", "write it out without aliases (*name)"))
		}
		findings = append(findings, s.duplicates(node)...)
		d := &document{index: index, node: node, start: node.Line}
		if value, ok := plain(node).(map[string]any); ok {
			d.object = value
		}
		documents = append(documents, d)
	}
	extents(documents, content)
	return documents, findings
}

// extents finds the first and last lines of the documents. A comment above the first field belongs to the document below it.
func extents(documents []*document, content []byte) {
	var separators []int
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if bytes.HasPrefix(text, []byte("---")) {
			separators = append(separators, line)
		}
	}
	for i, d := range documents {
		d.end = line
		if i+1 < len(documents) {
			d.end = documents[i+1].start - 1
		}
		// A file may have hundreds of thousands of documents, so search for the separator of each.
		below := sort.SearchInts(separators, d.node.Line)
		if below > 0 {
			d.start = separators[below-1]
		}
		if below < len(separators) && separators[below] < d.end {
			d.end = separators[below] - 1
		}
		if d.start == d.node.Line {
			d.start = 1
		}
	}
}

func syntaxFinding(name string, content []byte, err error) diag.Finding {
	line, column, text := yamledit.Place(content, err)
	return finding(RuleSyntax, name, max(line, 1), column, "not valid YAML: "+text, "")
}

type screener struct {
	file   string
	budget int
}

// measure subtracts the expansion of n from the budget. Written nodes are bounded by the size of the file, so only nodes that an alias
// stands for count. The depth ends the expansion of an alias inside its own anchor.
func (s *screener) measure(n *yaml.Node, expanded bool, depth int) bool {
	if depth > maxDepth {
		return false
	}
	for n.Kind == yaml.AliasNode {
		n, expanded = n.Alias, true
	}
	if expanded {
		if s.budget--; s.budget < 0 {
			return false
		}
	}
	for _, inner := range n.Content {
		if !s.measure(inner, expanded, depth+1) {
			return false
		}
	}
	return true
}

// duplicates finds keys that a mapping has twice. YAML parsers differ in which value they use.
func (s *screener) duplicates(n *yaml.Node) diag.Findings {
	var out diag.Findings
	if n.Kind == yaml.MappingNode {
		first := make(map[string]int, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				continue
			}
			if line, twice := first[key.Value]; twice {
				out = append(out, finding(RuleDuplicateField, s.file, key.Line, key.Column,
					fmt.Sprintf("%.60s: field is given twice, first in line %d", key.Value, line), "keep one of them"))
				continue
			}
			first[key.Value] = key.Line
		}
	}
	for _, inner := range n.Content { // an alias has no content; its anchor is checked in its own place
		out = append(out, s.duplicates(inner)...)
	}
	return out
}

// plain returns the value of a node with the types of the API machinery: int64, float64, string, bool, nil, maps and lists.
func plain(n *yaml.Node) any {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind { //nolint:exhaustive // there are no others inside of a document
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], plain(n.Content[i+1])
			if key.ShortTag() == "!!merge" {
				merge(out, value)
				continue
			}
			out[key.Value] = value
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = plain(item)
		}
		return out
	}
	return scalar(n)
}

// merge adds the fields that `<<:` names, unless out already has them.
func merge(out map[string]any, value any) {
	switch value := value.(type) {
	case map[string]any:
		for k, v := range value {
			if _, own := out[k]; !own {
				out[k] = v
			}
		}
	case []any:
		for _, each := range value {
			merge(out, each)
		}
	}
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!str", "!!binary", "!!timestamp":
		return n.Value
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return n.Value
	}
	switch v := v.(type) {
	case int:
		return int64(v)
	case uint64:
		return float64(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return n.Value // JSON cannot express these values
		}
		return v
	case int64, bool, nil, string:
		return v
	}
	return n.Value
}
