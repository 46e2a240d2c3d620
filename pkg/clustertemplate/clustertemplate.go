// Package clustertemplate makes a chart of a template that clusterctl fills in: text in, files out. What clusterctl's variables are becomes
// values of the chart, with a schema; what Helm cannot say is refused with its line. It reads a template as clusterctl does, with
// clusterctl's own parser.
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

// Options say which chart to make of which template.
type Options struct {
	// Name of the chart, and Dir the folder that it goes to.
	Name, Dir string
	// File is what findings call the template; the chart's texts have the last part of it.
	File string
	// Content of the template.
	Content []byte
	// ExampleVersion is the Kubernetes version of the example of values.
	ExampleVersion string
}

// title is what the chart calls the template: where that lay is nobody's business.
func (o *Options) title() string {
	return strings.Join(strings.Fields(path.Base(strings.ReplaceAll(o.File, `\`, "/"))), " ")
}

// Chart is what became of a template.
type Chart struct {
	Files []manifest.File
	// Variables of the template that are values of the chart, by the names of the values.
	Variables []Variable
	// Secrets are those that the template makes and the chart does not: a Secret does not belong in Git in clear.
	Secrets []Secret
}

// Variable is a value of the chart.
type Variable struct {
	// Name of the variable in the template, and Value the path of the chart's value.
	Name, Value string
	Required    bool
	// Default is the value that it has by itself.
	Default any
	// Credential says that it is a password, a token or the like by its name: it does not belong in Git in clear.
	Credential bool
	// Line of the template where it stands first.
	Line int
	// types of JSON that it may have.
	types []string
}

// Secret is one that the chart leaves out.
type Secret struct {
	// Name as the template has it.
	Name string
	Line int
}

// New makes a chart of a template. Errors are findings with file and line, all at once: what is no template of a cluster, and what cannot
// be said in a chart.
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
	// token begins the name of each token, and is nowhere in the template.
	token string
	// tokenPattern finds the tokens of variables, and anyToken those of whole scalars as well.
	tokenPattern, anyToken *regexp.Regexp
	// whole are scalars that hold variables and nothing escapes them: each is written anew.
	whole []scalar
	// named are the variables by name, in the order of the template.
	named  []*variable
	byName map[string]*variable
	// pool is the name of the pool whose nodes WORKER_MACHINE_COUNT counts; "" where that is a value like any other.
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
