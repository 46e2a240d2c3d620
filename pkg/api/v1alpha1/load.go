package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// The limits of a fleet.yaml. A real file is far below them. They keep a hostile file from exhausting the machine's memory.
const (
	maxBytes = 512 << 10
	maxNodes = 50_000 // after aliases are expanded
	maxDepth = 32
)

// Load reads and decodes the fleet.yaml at path. The error says that the file cannot be read, or is an error of Decode.
func Load(path string) (*Fleet, error) {
	// One more byte, so that Decode sees a file that is too long.
	content, err := within.Start(filepath.Dir(path), filepath.Base(path), maxBytes+1)
	if errors.Is(err, os.ErrNotExist) {
		return nil, diag.Wrap("read fleet", err, "run fleetctl in the folder of the fleet repo, or make one with `fleetctl init`")
	}
	if err != nil {
		return nil, diag.Wrap("read fleet", err, "the file must be in the fleet repo, and you must be able to read it")
	}
	return Decode(path, content)
}

// Decode decodes the content of the file called filename, strictly. The error is diag.Findings with all problems in the order of the file:
// unknown, duplicate, missing or mistyped fields, and the errors of Validate. Decode returns a fleet if no finding is an error. This fleet
// has no defaults yet. Call Validate for its warnings.
func Decode(filename string, content []byte) (*Fleet, error) {
	src := &source{file: filename, positions: map[string]position{"": {1, 1}}}
	root, finding := parse(content)
	if finding != nil {
		finding.File = filename
		return nil, diag.Findings{*finding}
	}
	c := &collector{source: src}
	if checkTypeMeta(c, root, Kind); len(c.findings) > 0 {
		return nil, c.sorted()
	}
	fleet := &Fleet{source: src}
	d := &decoder{collector: c, budget: maxNodes, broken: map[string]bool{}}
	d.decode(root, fleet)
	if !d.exhausted() {
		c.findings = append(c.findings, validate(fleet, d.isBroken)...)
	}
	if err := c.sorted().Err(); err != nil {
		return nil, err
	}
	return fleet, nil
}

// parse returns the top node of content, which must be one YAML document. Otherwise it returns a finding.
func parse(content []byte) (*yaml.Node, *diag.Finding) {
	fail := func(rule, summary, hint string) (*yaml.Node, *diag.Finding) {
		return nil, &diag.Finding{Severity: diag.SeverityError, Rule: rule, Line: 1, Column: 1, Summary: summary, Hint: hint}
	}
	if len(content) > maxBytes {
		return fail(RuleLimit, fmt.Sprintf("file is larger than %d KiB", maxBytes>>10), "")
	}
	if !utf8.Valid(content) {
		return fail(RuleSyntax, "file is not UTF-8 text", "save it as UTF-8")
	}
	documents := yaml.NewDecoder(bytes.NewReader(content))
	var document, next yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF) || err == nil && yamledit.IsNull(document.Content[0]):
		return fail(RuleSyntax, "file is empty", "start with `apiVersion: "+APIVersion+"` and `kind: "+Kind+"`")
	case err != nil:
		return nil, syntaxFinding(content, err)
	}
	switch err := documents.Decode(&next); {
	case errors.Is(err, io.EOF):
		return document.Content[0], nil
	case err != nil:
		return nil, syntaxFinding(content, err)
	}
	return nil, &diag.Finding{
		Severity: diag.SeverityError, Rule: RuleSyntax, Line: next.Line, Column: next.Column,
		Summary: "file has more than one YAML document", Hint: "one file is one fleet: remove everything after `---`",
	}
}

// syntaxFinding turns an error of the YAML parser into a finding at the place of the mistake.
func syntaxFinding(src []byte, err error) *diag.Finding {
	line, column, message := yamledit.Place(src, err)
	return &diag.Finding{
		Severity: diag.SeverityError, Rule: RuleSyntax, Line: max(line, 1), Column: column,
		Summary: "not valid YAML: " + message,
	}
}

// checkTypeMeta reports a file of another apiVersion or kind. The caller then stops, because further findings would make no sense.
func checkTypeMeta(c *collector, root *yaml.Node, kind string) {
	if root.Kind != yaml.MappingNode {
		c.errorf(RuleType, "", "start with `apiVersion: "+APIVersion+"`", "expected fields, found %s", yamledit.Describe(root))
		return
	}
	for _, want := range []struct{ field, value string }{{"apiVersion", APIVersion}, {"kind", kind}} {
		value := lookup(root, want.field)
		switch {
		case value == nil || yamledit.IsNull(value):
			c.errorf(RuleVersion, want.field, "add `"+want.field+": "+want.value+"`", "required field is missing")
			continue
		case value.Kind == yaml.ScalarNode && value.Value == want.value:
			continue
		}
		c.source.positions[want.field] = position{value.Line, value.Column}
		hint := "expected `" + want.field + ": " + want.value + "`"
		if want.field == "apiVersion" && strings.HasPrefix(value.Value, "fleetctl.dev/") {
			hint = "this fleetctl knows only " + APIVersion + "; a file of a newer version needs a newer fleetctl"
		}
		c.errorf(RuleVersion, want.field, hint, "%s is not a known %s", quoted(value), want.field)
	}
}

// lookup returns the value of key in a mapping, or nil.
func lookup(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// quoted returns the value of a scalar in quotes, cut to 60 characters. For another node it returns a description.
func quoted(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return yamledit.Describe(n)
	}
	return fmt.Sprintf("%.60q", n.Value)
}
