package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// configFile is the content of the configuration file, with the line of each key.
type configFile struct {
	path     string
	values   map[string]any
	lines    map[string]int
	findings diag.Findings
}

// openFile reads and checks the configuration file. Only the default file may be missing.
func openFile(path string) (*configFile, error) {
	explicit := path
	if explicit == "" {
		explicit = os.Getenv(EnvName("config"))
	}
	file := &configFile{path: explicit, values: map[string]any{}, lines: map[string]int{}}
	if explicit == "" {
		file.path = DefaultFile()
	}
	if file.path == "" {
		return file, nil
	}
	const most = 1 << 20
	content, err := within.Given(file.path, most)
	if explicit == "" && errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return nil, diag.Wrap("read configuration", err, "give --config a file that you can read")
	}
	file.parse(content)
	return file, file.findings.Err()
}

func (c *configFile) parse(content []byte) {
	documents, err := yamledit.Parse(content)
	if err != nil {
		line, column, message := yamledit.Place(content, err)
		c.findings = append(c.findings, diag.Finding{
			Severity: diag.SeverityError, Rule: "syntax", File: c.path, Line: max(line, 1), Column: column, Summary: "not valid YAML: " + message,
		})
		return
	}
	if len(documents) > 1 {
		c.report(documents[1], "syntax", "remove all documents after the first `---`", "file has more than one YAML document")
		return
	}
	if len(documents) == 0 || documents[0].ShortTag() == "!!null" {
		return
	}
	root := documents[0]
	if root.Kind != yaml.MappingNode {
		c.report(root, "wrong-type", "write lines like `output: json`", "expected keys with values")
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		c.entry(root.Content[i], root.Content[i+1])
	}
}

func (c *configFile) entry(key, value *yaml.Node) {
	name := key.Value
	k, known := fileKeys[name]
	if first, twice := c.lines[name]; twice {
		c.report(key, "duplicate-field", "", "%s is given twice, first in line %d", name, first)
		return
	}
	if !known {
		c.unknown(key)
		return
	}
	c.lines[name] = key.Line
	v, ok := read(value, k)
	if !ok {
		c.report(value, "wrong-type", "", "%s: expected %s", name, k)
		return
	}
	c.values[name] = v
}

func (c *configFile) unknown(key *yaml.Node) {
	hint := "known: " + strings.Join(Keys(), ", ")
	nearest := diag.Nearest(key.Value, Keys())
	switch {
	case renamed[key.Value] != "":
		hint = "it was renamed to " + renamed[key.Value]
	case slices.Contains(flagOnly, key.Value):
		hint = "give it on the command line"
	case nearest != "":
		hint = "did you mean " + nearest + "?"
	}
	c.report(key, "unknown-field", hint, "unknown key %.60q", key.Value)
}

func (c *configFile) report(n *yaml.Node, rule, hint, format string, args ...any) {
	c.findings = append(c.findings, diag.Finding{
		Severity: diag.SeverityError, Rule: rule, File: c.path, Line: n.Line, Column: n.Column,
		Summary: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// read decodes a value of the kind k from its node.
func read(n *yaml.Node, k kind) (any, bool) {
	if k == kindList {
		items := []string{}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, false
			}
			items = append(items, item.Value)
		}
		return items, n.Kind == yaml.SequenceNode
	}
	if n.Kind != yaml.ScalarNode {
		return nil, false
	}
	switch k {
	case kindBool:
		b, err := strconv.ParseBool(n.Value)
		return b, err == nil && n.ShortTag() == "!!bool"
	case kindDuration:
		_, err := time.ParseDuration(n.Value)
		return n.Value, err == nil
	case kindText, kindList:
	}
	return n.Value, n.ShortTag() != "!!null"
}
