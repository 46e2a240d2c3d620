package fleetrepo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/templates"
)

// chart is the chart of a flavour: the copy in the repo, or else fleetctl's.
type chart struct {
	flavour  string
	called   string // for people; "" means the flavour
	inRepo   bool
	defaults map[string]any
	schema   map[string]any
	compiled *valuesschema.Schema // nil if the chart has no schema
	// annotations of Chart.yaml.
	annotations map[string]string
}

// Flavours returns the names of the charts in the repo and of fleetctl's charts.
func (r *Repo) Flavours() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flavours == nil {
		r.flavours = r.listFlavours()
	}
	return slices.Clone(r.flavours)
}

func (r *Repo) listFlavours() []string {
	own, err := r.folders(layout.ChartsDir)
	if err != nil {
		own = nil // without the repo's folder, only fleetctl's charts count
	}
	known, err := scaffold.Flavours()
	if err != nil {
		return sortedSet(own)
	}
	return sortedSet(append(own, known...))
}

func (r *Repo) chart(flavour string) (*chart, error) {
	r.mu.Lock()
	known := r.charts[flavour]
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if !slices.Contains(r.Flavours(), flavour) {
		return nil, diag.Unknown("flavour", flavour, r.Flavours(), "")
	}
	dir := path.Join(layout.ChartsDir, flavour)
	c := &chart{flavour: flavour, inRepo: r.exists(path.Join(dir, "Chart.yaml"))}
	read := func(name string) ([]byte, error) { return templates.Charts.ReadFile(path.Join(dir, name)) }
	if c.inRepo {
		read = func(name string) ([]byte, error) { return r.read(path.Join(dir, name)) }
	}
	if err := c.load(read, &r.Schemas); err != nil {
		if fault, ok := errors.AsType[*chartFault](err); ok {
			return nil, fault.findings(dir)
		}
		return nil, fmt.Errorf("read the chart %s: %w", dir, err)
	}
	r.mu.Lock()
	r.charts[flavour] = c
	r.mu.Unlock()
	return c, nil
}

// emptyByDefault tells whether a list of the chart's values means the same when it is missing as when it is empty.
func (c *chart) emptyByDefault(field string) bool {
	list, ok := c.defaults[field].([]any)
	return ok && len(list) == 0
}

// chartFault is an error about a file of a chart that cannot be read.
type chartFault struct {
	file    string
	content []byte
	err     error
}

func (f *chartFault) Error() string { return f.file + ": " + f.err.Error() }

func (f *chartFault) Unwrap() error { return f.err }

// findings returns the error as findings with their place in the chart in dir. They are the same for all clusters of the chart.
func (f *chartFault) findings(dir string) diag.Findings { return f.at(path.Join(dir, f.file)) }

// SchemaFindings turns an error of valuesschema about the schema of a chart into findings, with their place in its file.
func SchemaFindings(file string, content []byte, err error) diag.Findings {
	return (&chartFault{content: content, err: err}).at(file)
}

func (f *chartFault) at(file string) diag.Findings {
	line, column, message := yamledit.Place(f.content, f.err)
	if wrong, ok := errors.AsType[*valuesschema.Error](f.err); ok {
		line, column = wrong.Place(f.content)
		message = wrong.Said
	}
	message, _, _ = strings.Cut(message, "\n") // the other errors are like the first one
	return diag.Findings{{
		Severity: diag.SeverityError, Rule: v1alpha1.RuleSyntax, File: file, Line: max(line, 1), Column: column,
		Summary: "the chart cannot be read: " + message, Hint: diag.Hint(f.err),
	}}
}

// load reads a chart's defaults and schema. A chart may lack both.
func (c *chart) load(read func(name string) ([]byte, error), schemas *valuesschema.Schemas) error {
	switch content, err := read("values.yaml"); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if c.defaults, err = decodeMap(content); err != nil {
			return &chartFault{"values.yaml", content, err}
		}
	}
	if err := c.loadSchema(read, schemas); err != nil {
		return err
	}
	return c.readAnnotations(read)
}

// loadSchema reads a chart's schema.
func (c *chart) loadSchema(read func(name string) ([]byte, error), schemas *valuesschema.Schemas) error {
	content, err := read(valuesschema.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.schema, err = valuesschema.Decode(content)
	if err == nil && c.schema != nil && bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		c.schema, err = decodeMap(content) // numbers in the schema stay whole
	}
	if err == nil && c.schema != nil {
		c.compiled, err = schemas.Compile(c.schema)
	}
	if err != nil {
		return &chartFault{valuesschema.File, content, err}
	}
	return nil
}

// ValueFindings returns a finding for each value of a HelmRelease that the chart's schema refuses, with its place and the schema's
// description. node is the HelmRelease in file. called is the chart for people, such as "flavour docker".
func ValueFindings(file string, node *yaml.Node, called string, schema map[string]any, failed *valuesschema.Refusal) diag.Findings {
	c := &declared{Cluster: Cluster{File: file}, node: node}
	return c.schemaFindings(&chart{called: called, schema: schema}, failed)
}

// readAnnotations reads the chart's annotations about its clusters.
func (c *chart) readAnnotations(read func(name string) ([]byte, error)) error {
	content, err := read("Chart.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	documents, err := yamledit.Parse(content)
	if err != nil || len(documents) == 0 {
		return fmt.Errorf("read Chart.yaml: %w", cmp.Or(err, errors.New("file is empty")))
	}
	if n := yamledit.Lookup(documents[0], "annotations"); n != nil {
		if err := n.Decode(&c.annotations); err != nil {
			return fmt.Errorf("read Chart.yaml: %w", err)
		}
	}
	return nil
}

// decodeMap reads the only document of a file, after a check for aliases.
func decodeMap(content []byte) (map[string]any, error) {
	documents, err := yamledit.Parse(content)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	if len(documents) > 1 {
		return nil, errors.New("file has more than one YAML document")
	}
	root := documents[0]
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	if is := yamledit.Resolve(root); is.Kind != yaml.MappingNode && !yamledit.IsNull(is) {
		return nil, diag.Errorf("write name: value", "file is %s, and not fields", yamledit.Describe(is))
	}
	var out map[string]any
	return out, documents[0].Decode(&out)
}

// overlay merges top into base as Helm does: maps are merged, and null removes a default.
func overlay(base, top map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range top {
		below, belowIsMap := out[name].(map[string]any)
		above, aboveIsMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, name)
		case belowIsMap && aboveIsMap:
			out[name] = overlay(below, above)
		default:
			out[name] = value
		}
	}
	return out
}

// check checks the values of a cluster against its chart's schema. Findings have the line of the value.
func (c *declared) check(ch *chart) error {
	var values map[string]any
	if n := yamledit.Find(c.node, "spec", "values"); n != nil {
		if err := n.Decode(&values); err != nil {
			return findingsOf(c.File, err)
		}
	}
	findings := c.checkPools()
	if ch.compiled != nil {
		failed, err := ch.compiled.Judge(overlay(ch.defaults, values))
		if err != nil {
			return findingsOf(c.File, fmt.Errorf("hold the values against values.schema.json of the chart %s: %w", ch.flavour, err))
		}
		if failed != nil {
			findings = append(findings, c.schemaFindings(ch, failed)...)
		}
	}
	slices.SortStableFunc(findings, func(a, b diag.Finding) int { return a.Line - b.Line })
	return findings.Err()
}

// checkPools checks rules of pools that a schema cannot express. The chart's templates have the same rules.
func (c *declared) checkPools() diag.Findings {
	var findings diag.Findings
	seen := map[string]bool{}
	for i, p := range c.Pools {
		switch {
		case p.Name == "control-plane":
			findings = append(findings, c.finding([]any{"pools", i, "name"}, "the name control-plane is taken", ""))
		case seen[p.Name] && p.Name != "":
			findings = append(findings, c.finding([]any{"pools", i, "name"}, fmt.Sprintf("there are two pools called %s", p.Name), ""))
		}
		if p.Min != nil && p.Max != nil && *p.Min > *p.Max {
			findings = append(findings, c.finding([]any{"pools", i, "min"}, fmt.Sprintf("%d is more than max, %d", *p.Min, *p.Max), ""))
		}
		seen[p.Name] = true
	}
	return findings
}

// finding is a finding about the value at path.
func (c *declared) finding(path yamledit.Path, summary, hint string) diag.Finding {
	at := yamledit.Nearest(c.node, append([]any{"spec", "values"}, path...)...)
	if len(path) > 0 {
		summary = path.String() + ": " + summary
	}
	return diag.Finding{
		Severity: diag.SeverityError, Rule: v1alpha1.RuleValue, File: c.File, Line: at.Line, Column: at.Column, Summary: summary, Hint: hint,
	}
}

// schemaFindings returns a finding for each innermost cause, with its place.
func (c *declared) schemaFindings(ch *chart, failed *valuesschema.Refusal) diag.Findings {
	path := c.pathOf(failed.Location)
	var findings diag.Findings
	switch {
	case failed.Unknown != nil:
		for _, name := range failed.Unknown {
			known := propertiesAt(ch.schema, path)
			hint := "known here: " + strings.Join(known, ", ")
			if nearest := diag.Nearest(name, known); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			f := c.finding(append(slices.Clone(path), name), cmp.Or(ch.called, "flavour "+ch.flavour)+" has no such value", hint)
			f.Rule = v1alpha1.RuleUnknownField
			findings = append(findings, f)
		}
	case failed.Missing != nil:
		for _, name := range failed.Missing {
			f := c.finding(append(slices.Clone(path), name), "required, and missing", describe(ch.schema, append(slices.Clone(path), name)))
			f.Rule = v1alpha1.RuleRequired
			findings = append(findings, f)
		}
	case failed.Name != "":
		return diag.Findings{c.finding(append(slices.Clone(path), failed.Name), "a field may not have this name here", describe(ch.schema, path))}
	case failed.Choice:
		var ways []string
		for i := range failed.Causes {
			for _, f := range c.schemaFindings(ch, &failed.Causes[i]) {
				ways = append(ways, strings.TrimPrefix(f.Summary, path.String()+"."))
			}
		}
		return diag.Findings{c.finding(path, "one of these has to change: "+strings.Join(ways, "; "), "see the chart's README")}
	case failed.Not:
		return diag.Findings{c.finding(path, "this combination of values is not allowed", "see the chart's README")}
	case len(failed.Causes) == 0:
		return diag.Findings{c.finding(path, failed.Said, describe(ch.schema, path))}
	default:
		for i := range failed.Causes {
			findings = append(findings, c.schemaFindings(ch, &failed.Causes[i])...)
		}
	}
	return findings
}

// pathOf turns a JSON location into a path. The values tell which parts are indexes.
func (c *declared) pathOf(location []string) yamledit.Path {
	var path yamledit.Path
	for _, token := range location {
		var step any = token
		if n := c.value(path...); n != nil && n.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(token); err == nil {
				step = i
			}
		}
		path = append(path, step)
	}
	return path
}

// schemaAt returns the part of a schema for the value at path, or nil.
func schemaAt(schema map[string]any, path yamledit.Path) map[string]any {
	for _, s := range path {
		var next any
		switch s := s.(type) {
		case string:
			properties, _ := schema["properties"].(map[string]any)
			if next = properties[s]; next == nil {
				next = schema["additionalProperties"]
			}
		case int:
			next = schema["items"]
		}
		schema, _ = next.(map[string]any)
	}
	return schema
}

func propertiesAt(schema map[string]any, path yamledit.Path) []string {
	properties, _ := schemaAt(schema, path)["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// describe returns the schema's description of a value.
func describe(schema map[string]any, path yamledit.Path) string {
	text, _ := schemaAt(schema, path)["description"].(string)
	return strings.TrimSuffix(text, ".")
}
