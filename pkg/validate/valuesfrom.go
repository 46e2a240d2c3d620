package validate

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// checkValues reports values of a HelmRelease, in the ConfigMaps and Secrets of its valuesFrom, that helm-controller cannot read: see
// ChartValuesFromReferences in fluxcd/pkg/chartutil. Without a targetPath they are a mapping in YAML.
func (s *resolver) checkValues(p place, o *object) (out diag.Findings) {
	if o.Kind != "HelmRelease" || groupOf(o) != "helm.toolkit.fluxcd.io" {
		return nil
	}
	var content map[string]any
	_ = kjson.Unmarshal(o.JSON, &content) // its schema reports wrong types
	for i, from := range mapping.Fields(content).List("spec", "valuesFrom") {
		key := cmp.Or(from.Text("valuesKey"), "values.yaml")
		held, field, text := s.heldValue(p, o.Namespace, from, key)
		target := from.Text("targetPath")
		switch {
		case held == nil || strings.Contains(target, "${"):
		case target != "":
			if literal, _ := from["literal"].(bool); !literal && strings.Contains(strings.TrimSpace(text), "\n") && isMapping(text) {
				f := o.at(fmt.Sprintf("spec.valuesFrom[%d].targetPath", i), RuleValue,
					fmt.Sprintf("the %s %.80s has a mapping at %.80s, and a targetPath takes one value: the mapping becomes text",
						from.Text("kind"), held.Name, key), "take targetPath away, and write the whole path into the values")
				f.Severity = diag.SeverityWarning
				out = append(out, f)
			}
		default:
			out = append(out, held.judgeValues(field, text)...)
		}
	}
	return out
}

// heldValue returns the object of the repo with the values under a key, their field and their text. The object is nil if the repo does not
// have it, if the value is encrypted, or if Flux fills something in.
func (s *resolver) heldValue(p place, namespace string, from mapping.Fields, key string) (held *object, field, text string) {
	for _, o := range s.called(p, from.Text("name")) {
		if o.Kind != from.Text("kind") || o.Namespace != namespace || groupOf(o) != "" || strings.Contains(string(o.JSON), "${") {
			continue
		}
		var content map[string]any
		_ = kjson.Unmarshal(o.JSON, &content) // its schema reports wrong types
		if content["sops"] != nil {
			return nil, "", ""
		}
		f := mapping.Fields(content)
		if text, is := f.In("stringData")[key].(string); is && o.Kind == "Secret" {
			return o, "stringData[" + key + "]", text
		}
		text, is := f.In("data")[key].(string)
		if !is {
			return nil, "", ""
		}
		if o.Kind == "Secret" {
			decoded, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return nil, "", ""
			}
			text = string(decoded)
		}
		return o, "data[" + key + "]", text
	}
	return nil, "", ""
}

// errorLine finds the line in the message of the YAML parser.
var errorLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: line (\d+): `) })

// judgeValues reports values that are no mapping in YAML.
func (o *object) judgeValues(field, text string) diag.Findings {
	if strings.HasPrefix(text, "ENC[") {
		return nil
	}
	const hint = "write them as in the values.yaml of the chart"
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		f := o.at(field, RuleValue, fmt.Sprintf("these values are no YAML: %.200v", err), hint)
		if found := errorLine().FindStringSubmatch(err.Error()); found != nil {
			line, _ := strconv.Atoi(found[1])
			o.insideText(&f, field, min(line, 1+strings.Count(strings.TrimSpace(text), "\n")))
		}
		return diag.Findings{f}
	}
	if isMappingNode(&document) {
		return nil
	}
	return diag.Findings{o.at(field, RuleValue, "these values are no mapping, and Helm takes no others",
		hint+", or set a targetPath for one value")}
}

func isMapping(text string) bool {
	var document yaml.Node
	return yaml.Unmarshal([]byte(text), &document) == nil && len(document.Content) > 0 && document.Content[0].Kind == yaml.MappingNode
}

// isMappingNode tells whether a document is a mapping, or empty.
func isMappingNode(document *yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].Kind == yaml.MappingNode || yamledit.IsNull(document.Content[0])
}

// insideText moves a finding about a field to a line of the field's text, the first of which is 1. It does so only where the text stands
// in the file line by line.
func (o *object) insideText(f *diag.Finding, field string, line int) {
	if o.document == nil || o.Template != "" {
		return
	}
	key := locate(o.document.node, field)
	value := valueOf(o.document.node, key)
	if value != nil && value.Style&yaml.LiteralStyle != 0 && value.Line >= key.Line {
		f.Line, f.Column = value.Line+line, 0
	}
}

// valueOf returns the value of a key below a node, or nil.
func valueOf(n, key *yaml.Node) *yaml.Node {
	for i, child := range n.Content {
		if child == key && n.Kind == yaml.MappingNode && i%2 == 0 && i+1 < len(n.Content) {
			return n.Content[i+1]
		}
		if found := valueOf(child, key); found != nil {
			return found
		}
	}
	return nil
}
