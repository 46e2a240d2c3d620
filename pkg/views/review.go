package views

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/fleetctl/fleetctl/pkg/adopt"
	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/validate"
)

// Diff is what `fleetctl diff` shows; wordsOnly leaves the differences out for a person.
func Diff(r *review.Report, wordsOnly bool) View {
	return view{r, func(p *Page) error { return reportView(p, r, wordsOnly) }}
}

// Rendered is what `fleetctl render` shows.
func Rendered(r *render.Result) View {
	return rendered{r}
}

// rendered makes its data only if a program asks for them, because a large fleet has much.
type rendered struct{ result *render.Result }

// Data implements View.
func (r rendered) Data() any { return forPrograms(r.result) }

// Human implements View.
func (r rendered) Human(p *Page) error { return renderView(p.Out, r.result) }

// Validation is what `fleetctl validate` shows.
func Validation(r *validate.Result) View {
	return view{r, func(p *Page) error { return validationView(p, r) }}
}

func validationView(p *Page, r *validate.Result) error {
	switch p.Format { //nolint:exhaustive // the others are those of every command
	case ui.SARIF:
		notRendered(p, r)
		return ui.PrintSARIF(p.Out, r.Prefix, validate.Rules(), r.Findings)
	case ui.GitHub:
		notRendered(p, r)
		return ui.PrintAnnotations(p.Out, r.Prefix, r.Findings)
	}
	if err := ui.PrintFindings(p.Streams, p.Out, r.Findings); err != nil {
		return err
	}
	for _, e := range r.Excluded {
		ui.Fprintf(p.Err, "Not checked, by spec.validate.exclude: %s (%s, %s, %s)\n", e.Path, plain.Count(e.Files, "file"),
			plain.Count(e.Objects, "object"), plain.Count(e.Findings, "finding"))
	}
	notRendered(p, r)
	ui.Fprintf(p.Err, "%s in %s, %s and %s\n", tally(r), plain.Count(r.Files, "file"), plain.Count(r.Clusters, "cluster"),
		plain.Count(r.Objects, "object"))
	return nil
}

// notRendered has one line for each chart that is not on this machine.
func notRendered(p *Page, r *validate.Result) {
	for _, n := range r.NotRendered {
		ui.Fprintf(p.Err, "Not rendered: the chart %s %s of feature %s: %s", n.Chart, n.Version, n.Feature, n.Reason)
		if n.Hint != "" {
			ui.Fprintf(p.Err, " (%s)", n.Hint)
		}
		ui.Fprintf(p.Err, "\n")
	}
}

// Rules is what `fleetctl validate --rules` shows.
func Rules(all []diag.Rule) View {
	return list(struct {
		FormatVersion string      `json:"formatVersion"`
		Rules         []diag.Rule `json:"rules"`
	}{"1", all}, all, ruleTable)
}

var ruleTable = table[diag.Rule]{
	none: "There are no rules.",
	name: func(r diag.Rule) string { return r.ID },
	columns: []column[diag.Rule]{
		{title: "RULE", of: func(r diag.Rule) string { return r.ID }},
		{title: "SEVERITY", of: func(r diag.Rule) string { return string(r.Severity) }},
		{title: "MEANING", of: func(r diag.Rule) string { return r.Summary }},
	},
}

// Adopted is what `fleetctl adopt` shows.
func Adopted(r *adopt.Report) View {
	return view{r, func(p *Page) error { return adoptView(p, r) }}
}

// reportView shows the difference first and then the words, because the end of an output is read first.
func reportView(p *Page, r *review.Report, wordsOnly bool) error {
	w, s := p.Out, p.Streams
	if err := objectsView(p, r); err != nil {
		return err
	}
	if len(r.Impact) == 0 {
		ui.FprintText(s.Err, r.Unchanged())
		return nil
	}
	out := s.Err // words are for people; a program gets the difference, too
	if wordsOnly {
		out = w
	} else {
		ui.FprintText(out, "")
	}
	for _, i := range r.Impact {
		ui.Fprintf(out, "%s\n", i.Summary)
	}
	return nil
}

// objectsView shows the difference of each object. It sums up generated ones, unless the reader wants the whole difference.
func objectsView(p *Page, r *review.Report) error {
	show, generated := diffView, generatedFiles(r)
	if p.Verbose {
		show, generated = wholeDiff, nil
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		diff := o.Diff
		if f := generated[o.File]; f != nil {
			diff = f.summary(o.File)
		}
		if err := show(p.Out, p.Streams, diff); err != nil {
			return err
		}
	}
	return nil
}

// renderResult is the result of render for a program.
type renderResult struct {
	FormatVersion string           `json:"formatVersion"`
	Objects       []renderedObject `json:"objects"`
	Problems      diag.Findings    `json:"problems"`
}

type renderedObject struct {
	ManagementCluster string          `json:"managementCluster"`
	Environment       string          `json:"environment,omitempty"`
	Cluster           string          `json:"cluster,omitempty"`
	Targets           []string        `json:"targets,omitempty"`
	Owner             render.Owner    `json:"owner"`
	GitSource         string          `json:"gitSource"`
	Source            render.Source   `json:"source"`
	Template          string          `json:"template,omitempty"`
	Suspended         bool            `json:"suspended,omitempty"`
	Object            json.RawMessage `json:"object"`
}

// forPrograms is the result in the form for JSON and YAML.
func forPrograms(result *render.Result) *renderResult {
	out := &renderResult{
		FormatVersion: "1", Objects: make([]renderedObject, 0, len(result.Objects)),
		Problems: append(diag.Findings{}, result.Findings...),
	}
	for _, o := range result.Objects {
		out.Objects = append(out.Objects, renderedObject{
			ManagementCluster: o.ManagementCluster, Environment: o.Environment, Cluster: o.Cluster, Targets: o.Targets, Owner: o.Owner,
			GitSource: o.GitSource, Source: o.Source, Template: o.Template, Suspended: o.Suspended, Object: o.JSON,
		})
	}
	return out
}

// writeAt is how many bytes are collected before they are written: as many as a pipe takes at once.
const writeAt = 64 << 10

// renderView is one YAML stream, with a comment before each object that says where the object comes from.
func renderView(w io.Writer, result *render.Result) error {
	buffer := make([]byte, 0, 2*writeAt)
	for _, o := range result.Objects {
		buffer = append(buffer, "---\n# "...)
		buffer = append(buffer, plain.Line(origin(o))...)
		buffer = append(buffer, '\n')
		if buffer = render.AppendYAML(buffer, o.JSON); len(buffer) < writeAt {
			continue
		}
		if _, err := w.Write(buffer); err != nil {
			return err
		}
		buffer = buffer[:0]
	}
	_, err := w.Write(buffer)
	return err
}

func origin(o *render.Object) string {
	from := o.Source.File
	if o.Template != "" {
		from = o.Template + ", by " + o.Source.File
	}
	if len(o.Targets) == 1 {
		return from + ", on " + o.Targets[0]
	}
	if len(o.Targets) > 1 {
		return from + ", on " + plain.Count(len(o.Targets), "cluster")
	}
	return from
}

// tally counts the findings.
func tally(r *validate.Result) string {
	text := plain.Count(r.Errors, "error") + ", " + plain.Count(r.Warnings, "warning")
	if r.Errors+r.Warnings == 0 {
		text = "Nothing is wrong"
	}
	if r.Ignored > 0 {
		text += fmt.Sprintf(" (%d silenced)", r.Ignored)
	}
	return text
}

// adoptView shows the content of the repo. If the command does not write fleet.yaml, the file goes to standard output.
func adoptView(p *Page, r *adopt.Report) error {
	s := p.Err
	t := tabwriter.NewWriter(s, 0, 0, 2, ' ', 0)
	ui.Fprintf(t, "FLUX BEGINS IN\tVERSION\tKUSTOMIZATIONS\tOBJECTS\tCLUSTERS\tIS\n")
	for i := range r.Flux {
		one := &r.Flux[i]
		is := "management cluster " + one.Name
		if !one.Manages {
			is = "a Flux without objects of Cluster API: left out of fleet.yaml"
		}
		ui.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\n", one.Path, orDash(one.Root.Flux), one.Kustomizations, one.Objects, one.Clusters, is)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, one := range r.Providers {
		ui.Fprintf(s, "%s provider %s %s\n", one.Type, one.Name, one.Version)
	}
	if len(r.Clusters) > 0 {
		ui.FprintText(s, "")
		all := clusterTable(r.Clusters)
		if err := all.print(s, p.Format, r.Clusters); err != nil {
			return err
		}
	}
	if len(r.Problems) > 0 {
		ui.Fprintf(s, "\n%s not understood, and therefore not checked:\n", plain.Count(len(r.Problems), "thing"))
		if err := ui.PrintFindings(p.Streams, s, r.Problems); err != nil {
			return err
		}
	}
	if !r.Written {
		_, err := io.WriteString(p.Out, r.Fleet)
		return err
	}
	done := "written"
	if r.Hash != "" {
		done = "committed as " + short(r.Hash)
	}
	ui.Fprintf(s, "\nOnly %s is %s. Look at it, then: fleetctl validate; fleetctl diff; fleetctl status --context NAME\n",
		v1alpha1.FileName, done)
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
