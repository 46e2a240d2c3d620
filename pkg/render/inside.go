package render

import (
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// renderInside renders a chart that needs more of Helm's engine than parsedTemplates offers, such as inner charts or tpl, but still within
// bounds. Helm's engine gets templates that only run the chart's own templates, which this package parses.
func renderInside(c *chart.Chart, top common.Values, within time.Duration, at *whereabouts) (map[string]string, error) {
	x := &execution{parsed: template.New("gotpl").Option(missingKey), bounds: bounds{marks: marks{}}}
	x.bounds.begin(within)
	defer at.run(&x.bounds)()
	funcs := functions()
	delete(funcs, "getHostByName")
	funcs["getHostByName"] = func(string) string { return "" } // as in Helm
	x.parsed.Funcs(funcs).Funcs(boundFunctions(withPrinting(funcs), &x.bounds))
	x.parsed.Funcs(template.FuncMap{"include": x.include, "tpl": x.tpl(x.parsed)})
	files := templatesIn(c)
	slices.SortFunc(files, func(a, b *common.File) int { return compareDepth(a.Name, b.Name) })
	for _, f := range files {
		if _, err := x.parsed.New(f.Name).Parse(string(f.Data)); err != nil {
			return nil, err
		}
	}
	x.bounds.marks.put(x.parsed)
	return engine.Engine{CustomTemplateFuncs: template.FuncMap{"include": x.include}}.Render(runners(c), top)
}

// templatesIn returns the templates of a chart and of its inner charts, with their full names.
func templatesIn(c *chart.Chart) []*common.File {
	var all []*common.File
	for _, f := range c.Templates {
		if c.Metadata.Type == "library" && !strings.HasPrefix(path.Base(f.Name), "_") {
			continue
		}
		all = append(all, &common.File{Name: path.Join(c.ChartFullPath(), f.Name), Data: f.Data})
	}
	for _, inner := range c.Dependencies() {
		all = append(all, templatesIn(inner)...)
	}
	return all
}

// runners returns a copy of a chart in which each template only runs the original template.
func runners(c *chart.Chart) *chart.Chart {
	out := *c
	out.Templates = nil
	for _, f := range c.Templates {
		out.Templates = append(out.Templates, &common.File{Name: f.Name, Data: []byte(`{{ include .Template.Name . }}`)})
	}
	inner := make([]*chart.Chart, 0, len(c.Dependencies()))
	for _, d := range c.Dependencies() {
		inner = append(inner, runners(d))
	}
	out.SetDependencies(inner...)
	return &out
}

var nameOfTpl = "tpl"

// tpl is Helm's function of that name: it runs a text as a template, which can include the chart's templates.
func (x *execution) tpl(parent *template.Template) func(text string, data any) (string, error) {
	return func(text string, data any) (string, error) {
		if err := x.bounds.spend(100 + len(text)/10); err != nil {
			return "", err
		}
		x.bounds.calls(&nameOfTpl)
		t, err := parent.Clone()
		if err != nil {
			return "", err
		}
		t.Option(missingKey).Funcs(template.FuncMap{
			"tpl":     x.tpl(t),
			"include": func(name string, data any) (string, error) { return x.executeIn(t, name, data) },
		})
		if t, err = t.New(parent.Name()).Parse(text); err != nil {
			return "", err
		}
		x.bounds.marks.put(t)
		x.bounds.called()
		out, err := x.executeIn(t, t.Name(), data)
		return strings.ReplaceAll(out, "<no value>", ""), err
	}
}
