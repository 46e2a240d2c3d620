// Package clustertemplate makes a chart of a cluster template for clusterctl: text in, files out. The template's variables become values
// of the chart, with a schema. A template that Helm cannot express is refused with its line. The package reads a template with clusterctl's
// own parser.
package clustertemplate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// RuleTemplate is the rule of findings in a template.
const RuleTemplate = "cluster-template"

// Options name the template, and the chart to make of it.
type Options struct {
	// Name is the name of the chart, and Dir its folder.
	Name, Dir string
	// File is the name of the template in findings. The chart's texts have only its last part.
	File string
	// Content is the content of the template.
	Content []byte
	// ExampleVersion is the Kubernetes version in the example values.
	ExampleVersion string
}

// title is the name of the template in the chart. It leaves out the folder.
func (o *Options) title() string {
	return strings.Join(strings.Fields(path.Base(strings.ReplaceAll(o.File, `\`, "/"))), " ")
}

// Chart is the result: a chart, and what its user has to know.
type Chart struct {
	Files []manifest.File
	// Variables are the variables of the template that became values of the chart, sorted by the names of the values.
	Variables []Variable
	// Secrets are the Secrets of the template. The chart leaves them out, because Git would hold them in clear.
	Secrets []Secret
}

// Variable is a value of the chart.
type Variable struct {
	// Name is the name of the variable in the template, and Value the path of the chart's value.
	Name, Value string
	Required    bool
	// Default is the variable's default.
	Default any
	// Credential tells whether the variable is a password, a token or the like, by its name. Its value must not be in Git in clear.
	Credential bool
	// Line is the first line of the template with the variable.
	Line int
	// types are the JSON types that the value may have.
	types []string
}

// Secret is a Secret that the chart leaves out.
type Secret struct {
	// Name is the name in the template.
	Name string
	Line int
}

// New makes a chart of a template. The error is diag.Findings with file and line, all at once: the content is no cluster template, or a
// chart cannot express it.
func New(o Options) (*Chart, error) {
	t := &translation{file: o.File, byName: map[string]*variable{}}
	t.read(o.Content)
	if len(t.findings) > 0 {
		return nil, t.findings
	}
	documents := t.documents()
	if len(t.findings) == 0 {
		t.checkCluster(documents)
	}
	if len(t.findings) == 0 {
		t.choosePool(documents)
		t.variables()
	}
	var text strings.Builder
	if len(t.findings) == 0 {
		t.writeDocuments(&text, documents)
	}
	if len(t.findings) > 0 {
		slices.SortStableFunc(t.findings, func(a, b diag.Finding) int { return a.Line - b.Line })
		return nil, t.findings
	}
	out := &Chart{Variables: t.values, Secrets: t.secrets}
	schema, err := t.schema(o)
	if err != nil {
		return nil, fmt.Errorf("make the schema of the values: %w", err)
	}
	add := func(name string, content []byte) {
		out.Files = append(out.Files, manifest.File{Path: path.Join(o.Dir, name), Content: content})
	}
	add("Chart.yaml", t.chartFile(o))
	add("README.md", t.readme(o))
	add("templates/_text.tpl", []byte(textHelper))
	add("templates/cluster.yaml", []byte(text.String()))
	add("values.schema.json", schema)
	values, err := t.valuesFile(o)
	if err != nil {
		return nil, fmt.Errorf("make the values: %w", err)
	}
	add("values.yaml", values)
	return out, nil
}

// translation is a template on its way to a chart.
type translation struct {
	file     string
	findings diag.Findings
	parts    []part
	// text is the template with a token for each variable.
	text string
	// token is the beginning of each token's name. The template does not contain it.
	token string
	// tokenPattern finds the tokens of variables. anyToken also finds the tokens of whole scalars.
	tokenPattern, anyToken *regexp.Regexp
	// whole are scalars that hold variables and nothing escapes them: each is written anew.
	whole []scalar
	// named are the variables by name, in the order of the template.
	named  []*variable
	byName map[string]*variable
	// pool is the name of the pool whose nodes WORKER_MACHINE_COUNT counts; "" if that variable is an ordinary value.
	pool    string
	values  []Variable
	secrets []Secret
}

func (t *translation) fault(line int, hint, format string, args ...any) {
	t.findings = append(t.findings, diag.Finding{
		Severity: diag.SeverityError, Rule: RuleTemplate, File: t.file, Line: max(line, 1), Summary: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// textHelper writes a value as text: a whole number has no exponent, however large it is.
const textHelper = `{{/* A value as text. Helm reads numbers as floating point ones: a whole one is written as it was given. */}}
{{- define "value.text" -}}
{{- if and (kindIs "float64" .) (eq (. | toString) (. | toString | float64 | toString)) (eq . (floor .)) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}
`

func (t *translation) chartFile(o Options) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: v2\nname: %s\ntype: application\nversion: 0.1.0\n", o.Name)
	quoted, err := json.Marshal("A Kubernetes cluster, made of the template " + o.title() + ".")
	if err != nil {
		quoted = []byte(`"A Kubernetes cluster."`)
	}
	fmt.Fprintf(&b, "description: %s\n", quoted)
	return b.Bytes()
}
