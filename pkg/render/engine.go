package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	helmchart "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render/internal/codec"
)

// parsedTemplates are the templates of a chart, parsed once for all releases. Helm's engine parses them again for each release, which takes
// as long as running them. They run as in Helm, with Helm's functions. If they fail, or if a chart needs more than this package offers,
// Helm's engine renders the release.
type parsedTemplates struct {
	names  []string // the names of the files to render
	parsed *template.Template
	funcs  template.FuncMap // the functions with which they were parsed
	marks  marks
	ready  sync.Pool // of *execution
	// included is nil if results must not be remembered.
	included *included
}

// execution is a copy of the templates that renders one release at a time, with its own include.
type execution struct {
	parsed   *template.Template
	bounds   bounds
	buffers  []*bytes.Buffer // free buffers
	included *included
}

// newTemplates parses a chart's templates. It returns nil if Helm's engine has to render the chart, because it has inner charts, or because
// templates read files or use other functions, such as tpl.
func newTemplates(c *chart.Chart) *parsedTemplates {
	if len(c.Dependencies()) > 0 || c.Metadata.Type == "library" || len(c.Metadata.Dependencies) > 0 {
		return nil
	}
	funcs := functions()
	all := &parsedTemplates{included: &included{}, funcs: funcs, marks: marks{}, parsed: template.New("gotpl").Option(missingKey).Funcs(funcs)}
	files := slices.Clone(c.Templates)
	slices.SortFunc(files, func(a, b *common.File) int { return compareDepth(a.Name, b.Name) })
	for _, f := range files {
		text := string(f.Data)
		if readsFiles().MatchString(text) {
			return nil
		}
		if differsEachTime().MatchString(text) {
			all.included = nil
		}
		name := path.Join(c.ChartFullPath(), f.Name)
		if _, err := all.parsed.New(name).Parse(text); err != nil {
			return nil // Helm's engine says what is wrong
		}
		if !strings.HasPrefix(path.Base(name), "_") {
			all.names = append(all.names, name)
		}
	}
	all.marks.put(all.parsed)
	return all
}

// readsFiles matches templates that read the chart's other files, or its inner charts.
var readsFiles = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[."` + "`" + `](Files|Subcharts)\b`) })

// missingKey is the option that makes a missing value empty.
const missingKey = "missingkey=zero"

// compareDepth is Helm's order of templates, deep ones first: a definition nearer to the top wins.
func compareDepth(a, b string) int {
	if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
		return d
	}
	return strings.Compare(b, a)
}

// renderTemplates renders a chart with values as Helm does. It returns the results by file.
func (l *loadedChart) renderTemplates(c *chart.Chart, top common.Values, at *whereabouts) (map[string]string, error) {
	l.prepare.Do(func() { l.templates = newTemplates(l.chart) })
	if l.beyond.Load() >= mayGoBeyond {
		return nil, beyond("the chart went beyond what its templates may take for %s already", plain.Count(mayGoBeyond, "other"))
	}
	files, err := l.renderWithin(c, top, at)
	if bound := boundOf(err); bound != nil {
		l.beyond.Add(1)
		return nil, bound
	}
	return files, err
}

// mayGoBeyond is how many releases of a chart may go beyond bounds, which takes long. The templates of further releases are not run.
const mayGoBeyond = 3

func (l *loadedChart) renderWithin(c *chart.Chart, top common.Values, at *whereabouts) (files map[string]string, err error) {
	began := time.Now()
	if l.templates != nil && c == l.chart {
		files, err = l.templates.render(c, top, l.within, at)
	} else {
		files, err = renderInside(c, top, l.within, at)
	}
	if err == nil || boundOf(err) != nil {
		return files, err
	}
	// The templates failed within bounds, or need a function that this package lacks. Helm's engine renders them, or reports the fault.
	b := &bounds{}
	left := l.within
	if left > 0 { // the two tries together have the time of one release
		left = max(left-time.Since(began), time.Nanosecond)
	}
	b.begin(left)
	defer at.run(b)()
	return engine.Engine{CustomTemplateFuncs: boundFunctions(withPrinting(functions()), b)}.Render(c, top)
}

// render runs the templates. Callers do not show its error, because Helm's engine has better ones.
func (t *parsedTemplates) render(
	c *chart.Chart,
	top common.Values,
	within time.Duration,
	at *whereabouts,
) (files map[string]string, err error) {
	defer func() {
		if p := recover(); p != nil { // some functions panic
			err = errTemplate
		}
	}()
	accessor, err := helmchart.NewAccessor(c)
	if err != nil {
		return nil, err
	}
	metadata := accessor.MetadataAsMap()
	metadata["IsRoot"] = true
	values := map[string]any{
		"Chart": metadata, "Release": top["Release"], "Capabilities": top["Capabilities"], "Values": top["Values"],
		"Files": filesOf(c), "Subcharts": map[string]any{},
	}
	run, err := t.take()
	if err != nil {
		return nil, err
	}
	run.bounds.begin(within)
	defer at.run(&run.bounds)()
	files = make(map[string]string, len(t.names))
	for _, name := range t.names {
		values["Template"] = common.Values{"Name": name, "BasePath": path.Join(c.ChartFullPath(), "templates")}
		text, err := run.execute(name, values)
		if err != nil {
			return nil, err
		}
		files[name] = strings.ReplaceAll(text, "<no value>", "")
	}
	t.ready.Put(run) // a failed execution has wrong depths and is not used again
	return files, nil
}

// filesOf returns the files of a chart that are no templates, for a template that prints all its values.
func filesOf(c *chart.Chart) map[string][]byte {
	files := make(map[string][]byte, len(c.Files))
	for _, f := range c.Files {
		files[f.Name] = f.Data
	}
	return files
}

var errTemplate = errors.New("a template failed")

// take returns a copy of the templates that no other goroutine runs.
func (t *parsedTemplates) take() (*execution, error) {
	if run, ok := t.ready.Get().(*execution); ok {
		return run, nil
	}
	parsed, err := t.parsed.Clone()
	if err != nil {
		return nil, err
	}
	run := &execution{parsed: parsed.Option(missingKey), included: t.included, bounds: bounds{marks: t.marks}}
	run.parsed.Funcs(boundFunctions(withPrinting(t.funcs), &run.bounds)).Funcs(template.FuncMap{"include": run.include})
	return run, nil
}

func (x *execution) include(name string, data any) (string, error) {
	if len(x.bounds.running) == 0 {
		bindFiles(data)
	}
	from, pure := data.(string)
	if pure {
		if text, ok := x.included.get(name, from); ok {
			return text, nil
		}
	}
	text, err := x.execute(name, data)
	if pure && err == nil {
		x.included.put(name, from, text)
	}
	return text, err
}

// execute runs one template, with the templates that it includes.
func (x *execution) execute(name string, data any) (string, error) {
	return x.executeIn(x.parsed, name, data)
}

func (x *execution) executeIn(parsed *template.Template, name string, data any) (string, error) {
	if err := x.bounds.spend(costInclude); err != nil {
		return "", err
	}
	text := &bytes.Buffer{}
	if last := len(x.buffers) - 1; last >= 0 {
		text, x.buffers = x.buffers[last], x.buffers[:last]
	}
	err := parsed.ExecuteTemplate(meter{text, &x.bounds}, name, data)
	out := text.String()
	text.Reset()
	x.buffers = append(x.buffers, text)
	return out, err
}

// functions are the functions of Helm that charts use, with Helm's behaviour. A chart that uses any other function is rendered by Helm's
// engine.
func functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(all, name)
	}
	if quote, ok := all["quote"].(func(...any) string); ok {
		all["quote"] = quickQuote(quote)
	}
	all["include"] = func(string, any) (string, error) { return "", errTemplate } // take replaces it by one for the running templates
	all["required"] = func(_ string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errTemplate
		}
		return value, nil
	}
	all["fail"] = func(string) (string, error) { return "", errTemplate }
	all["lookup"] = func(string, string, string, string) (map[string]any, error) { return map[string]any{}, nil }
	all["toYaml"] = toYAML()
	all["toJson"] = func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		return string(text)
	}
	fields, items := fromYAML(), fromYAMLArray()
	all["fromYaml"] = func(text string) map[string]any { return runtime.DeepCopyJSON(fields(text)) }
	all["fromYamlArray"] = func(text string) []any {
		all, _ := runtime.DeepCopyJSONValue(items(text)).([]any)
		return all
	}
	all["fromJson"] = func(text string) map[string]any {
		value := map[string]any{}
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			value["Error"] = err.Error()
		}
		return value
	}
	all["fromJsonArray"] = func(text string) []any {
		value := []any{}
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			value = []any{err.Error()}
		}
		return value
	}
	return all
}

// quickQuote is sprig's quote with a short cut for a single text. fleetctl's charts call no other function as often.
func quickQuote(quote func(values ...any) string) func(values ...any) string {
	return func(values ...any) string {
		if len(values) == 1 {
			if text, ok := values[0].(string); ok {
				return strconv.Quote(text)
			}
		}
		return quote(values...)
	}
}

// The values that charts convert to YAML and back are mostly the same for all clusters of a flavour, so each is converted once. Callers
// share the values, and must copy them before a change.

func toYAML() func(value any) string {
	known := remembered(func(text string) string {
		out, err := sigsyaml.JSONToYAML([]byte(text))
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(out), "\n")
	})
	return func(value any) string {
		text, err := json.Marshal(value) // sigsyaml.Marshal begins with the same step
		if err != nil {
			return ""
		}
		if plain, ok := codec.PlainYAML(text); ok {
			return strings.TrimSuffix(plain, "\n")
		}
		return known(string(text))
	}
}

func fromYAML() func(text string) map[string]any {
	return remembered(func(text string) map[string]any {
		value := map[string]any{}
		if n := codec.ReadBlock([]byte(text)); n != nil && json.Unmarshal(n.AppendJSON(nil), &value) == nil {
			return value
		}
		if err := sigsyaml.Unmarshal([]byte(text), &value); err != nil {
			value["Error"] = err.Error()
		}
		return value
	})
}

func fromYAMLArray() func(text string) []any {
	return remembered(func(text string) []any {
		value := []any{}
		if err := sigsyaml.Unmarshal([]byte(text), &value); err != nil {
			value = []any{err.Error()}
		}
		return value
	})
}

// maxRemembered is how many bytes of text a remembered function keeps.
const maxRemembered = 1 << 20

// remembered returns a function that keeps results of the function of, until it has maxRemembered bytes of text. Several goroutines may
// call it.
func remembered[V any](of func(text string) V) func(text string) V {
	var mu sync.RWMutex
	known, size := map[string]V{}, 0
	return func(text string) V {
		mu.RLock()
		value, ok := known[text]
		mu.RUnlock()
		if ok {
			return value
		}
		value = of(text)
		mu.Lock()
		defer mu.Unlock()
		if size += len(text); size <= maxRemembered {
			known[strings.Clone(text)] = value
		}
		return value
	}
}
