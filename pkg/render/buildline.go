package render

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// buildErrors are errors of kustomize's builds, with the fields of the kustomization.yaml that they are about. Kustomize names no line; a
// pattern finds the text that is also in the file.
var buildErrors = []struct {
	pattern *regexp.Regexp
	fields  []string
}{
	{regexp.MustCompile(`apiVersion for Kustomization should be`), []string{"apiVersion"}},
	{regexp.MustCompile(`kind for Kustomization should be`), []string{"kind"}},
	{regexp.MustCompile(`resource with name (\S+) does not match a config`), []string{"replicas"}},
	{regexp.MustCompile(`nothing selected by \S*/([^.\s]+)\.`), []string{"replacements"}},
	{regexp.MustCompile("fieldPath `([^`]+)` is missing for replacement source"), []string{"replacements"}},
	{regexp.MustCompile(`unable to find field "([^"]+)" in replacement target`), []string{"replacements"}},
	{regexp.MustCompile(`invalid literal source (\S+), expe`), []string{"configMapGenerator", "secretGenerator"}},
	{regexp.MustCompile(`merging from generator .*Name:"([^"]+)"`), []string{"configMapGenerator", "secretGenerator"}},
	{regexp.MustCompile(`Unexpected kind: (\S+)`), []string{"patches", "patchesJson6902"}},
	{regexp.MustCompile(`for path: '([^']+)'`), []string{"patches", "patchesJson6902"}},
	{regexp.MustCompile(`missing path: ([^\s:]+)`), []string{"patches", "patchesJson6902"}},
	{regexp.MustCompile(`no resource matches strategic merge patch "[^/"]+/([^."]+)`), []string{"patches", "patchesStrategicMerge"}},
	{regexp.MustCompile(`builtin PatchTransformer with config`), []string{"patches"}},
}

// buildLine returns the line in a kustomization.yaml that an error of kustomize is about, or 0 if that is not certain: no line, or more
// than one, may be meant.
func buildLine(src []byte, message string) int {
	documents, err := yamledit.ParseWithin(src, Limits)
	if err != nil || len(documents) != 1 || documents[0].Kind != yaml.MappingNode {
		return 0
	}
	for _, known := range buildErrors {
		found := known.pattern.FindStringSubmatch(message)
		if found == nil {
			continue
		}
		lines := map[int]bool{}
		for _, field := range known.fields {
			key, value := entryOf(documents[0], field)
			switch {
			case value == nil:
			case value.Kind == yaml.ScalarNode:
				lines[key.Line] = true
			case len(found) > 1:
				linesWith(value, found[1], lines)
			}
		}
		if len(lines) == 0 {
			onlyItem(documents[0], known.fields, lines)
		}
		if len(lines) != 1 {
			return 0
		}
		for line := range lines {
			return line
		}
	}
	return 0
}

// entryOf returns the key and the value of a field.
func entryOf(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], yamledit.Resolve(n.Content[i+1])
		}
	}
	return nil, nil
}

// linesWith adds the lines of values that are a text. In a text of several lines, it adds the lines that have it as a word.
func linesWith(n *yaml.Node, text string, lines map[int]bool) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			linesWith(n.Content[i], text, lines)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			linesWith(item, text, lines)
		}
	case yaml.ScalarNode:
		if n.Value == text {
			lines[n.Line] = true
		}
		if n.Style&yaml.LiteralStyle == 0 {
			return
		}
		for i, line := range strings.Split(n.Value, "\n") {
			for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t,{}[]\"'", r) }) {
				if word == text {
					lines[n.Line+1+i] = true
				}
			}
		}
	default: // an alias has its text elsewhere
	}
}

// onlyItem adds the line of the only item that the lists in fields have.
func onlyItem(n *yaml.Node, fields []string, lines map[int]bool) {
	var items []*yaml.Node
	for _, field := range fields {
		if _, value := entryOf(n, field); value != nil && value.Kind == yaml.SequenceNode {
			items = append(items, value.Content...)
		}
	}
	if len(items) == 1 {
		lines[items[0].Line] = true
	}
}
