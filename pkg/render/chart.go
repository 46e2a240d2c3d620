package render

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
	"github.com/fleetctl/fleetctl/templates"
)

// charts loads each chart once for all releases.
type charts struct {
	repo    *repo
	schemas *valuesschema.Schemas
	within  time.Duration // the time for the templates of one release
	mu      sync.Mutex
	all     map[string]*loadedChart
	// archives has the requested charts from outside of the repo. The archive of a chart that is not available is nil.
	archives map[OutsideChart][]byte
}

// loadedChart is a chart: of the repo, or from outside of it. Many releases read it at once, and none changes it.
type loadedChart struct {
	dir string
	// within is the time that its templates may take for one release; 0 means no limit.
	within time.Duration

	once  sync.Once
	files []*archive.BufferedFile
	sum   key
	err   error
	// local are the folders of charts of the repo that it depends on, by Helm's names for them.
	local map[string]string

	parsed   sync.Once
	chart    *chart.Chart
	schemas  map[string]*valuesschema.Schema // by their texts, because an alias gives an inner chart another name
	inner    innerPlaces
	parseErr error

	prepare   sync.Once
	beyond    atomic.Int32     // the number of releases for which its templates went beyond bounds
	templates *parsedTemplates // nil if Helm's engine renders the chart
}

// load returns the chart in a folder with its files read. planned says that init has not completed the repo yet: init will add fleetctl's
// charts that are missing. The error says what cannot be read.
func (c *charts) load(dir string, planned bool) (*loadedChart, error) {
	c.mu.Lock()
	if c.all == nil {
		c.all = map[string]*loadedChart{}
	}
	l := c.all[dir]
	if l == nil {
		l = &loadedChart{dir: dir, within: c.within}
		c.all[dir] = l
	}
	c.mu.Unlock()
	l.once.Do(func() {
		from := c.repo
		if planned && !from.isDir(dir) {
			from = &repo{files: templates.Charts}
		}
		l.err = l.read(from)
	})
	return l, l.err
}

// read reads the files that Helm would read.
func (l *loadedChart) read(r *repo) error {
	if !r.isFile(path.Join(l.dir, "Chart.yaml")) {
		return diag.Errorf("spec.chart.spec.chart is a folder from the top of the repo", "there is no chart %s in the repo", l.dir)
	}
	var err error
	if l.files, err = readChart(r, l.dir); err != nil {
		return err
	}
	if err := l.addLocal(r); err != nil {
		return err
	}
	parts := make([][]byte, 0, 2*len(l.files))
	for _, f := range l.files {
		parts = append(parts, []byte(f.Name), f.Data)
	}
	l.sum = digest(parts...)
	return nil
}

// parse makes a chart from the files, and compiles its schemas. Values change a chart with dependencies, because they switch dependencies
// on and off, so such a chart is made again for each release.
func (l *loadedChart) parse(known *valuesschema.Schemas) (*chart.Chart, error) {
	l.parsed.Do(func() {
		u := &unpacking{places: innerPlaces{}}
		if l.parseErr = u.look(l.dir, "", l.files, 0); l.parseErr != nil {
			return
		}
		l.inner = u.places
		if l.chart, l.parseErr = loader.LoadFiles(l.files); l.parseErr != nil {
			return
		}
		if l.parseErr = l.chart.Validate(); l.parseErr != nil {
			return
		}
		if l.parseErr = checkInnerCharts(l.chart); l.parseErr != nil {
			return
		}
		maps.Copy(l.inner, l.local)
		l.inner.alias(l.chart)
		l.schemas = map[string]*valuesschema.Schema{}
		l.parseErr = l.compile(l.chart, known)
	})
	if l.parseErr != nil || len(l.chart.Dependencies()) == 0 && len(l.chart.Metadata.Dependencies) == 0 {
		return l.chart, l.parseErr
	}
	return loader.LoadFiles(l.files)
}

// compile reads the schemas of a chart and of its inner charts.
func (l *loadedChart) compile(c *chart.Chart, known *valuesschema.Schemas) error {
	if c.Schema != nil {
		document, err := valuesschema.Decode(c.Schema)
		var s *valuesschema.Schema
		if err == nil && document != nil {
			s, err = known.Compile(document)
		}
		if err != nil {
			return fleetrepo.SchemaFindings(l.place(path.Join(c.ChartFullPath(), "values.schema.json")), c.Schema, err)
		}
		l.schemas[string(c.Schema)] = s
	}
	for _, inner := range c.Dependencies() {
		if err := l.compile(inner, known); err != nil {
			return err
		}
	}
	return nil
}

// place returns the path in the repo of a file that Helm names by charts, such as web/charts/db/templates/a.yaml.
func (l *loadedChart) place(name string) string {
	_, short, _ := strings.Cut(filepath.ToSlash(name), "/")
	return l.inner.place(l.dir, short)
}

// crds returns the objects in the chart's crds folder.
func (l *loadedChart) crds(c *chart.Chart) ([]*content, diag.Findings) {
	var all []*content
	var findings diag.Findings
	for _, crd := range c.CRDObjects() {
		name := l.place(crd.Filename)
		objects, problems := parse(name, crd.File.Data)
		for _, o := range objects {
			o.template = name
		}
		all, findings = append(all, objects...), append(findings, problems...)
	}
	return all, findings
}

// capabilities returns what templates see of the cluster.
func capabilities(kubernetesVersion string) (*common.Capabilities, error) {
	c := common.DefaultCapabilities.Copy()
	if kubernetesVersion == "" {
		return c, nil
	}
	v, err := common.ParseKubeVersion(kubernetesVersion)
	if err != nil {
		return nil, fmt.Errorf("kubernetesVersion %q: %w", kubernetesVersion, err)
	}
	c.KubeVersion = *v
	return c, nil
}

// valuesFiles returns the merged values of the files that a HelmRelease names in place of the chart's own values.yaml.
func valuesFiles(r *repo, names []string, ignoreMissing bool) (map[string]any, error) {
	all := map[string]any{}
	for _, name := range names {
		clean, ok := inside(".", name)
		if !ok {
			return nil, fmt.Errorf("values file %q leads out of the fleet repo", name)
		}
		if ignoreMissing && !r.isFile(clean) {
			continue
		}
		content, err := r.read(clean)
		if err != nil {
			return nil, fmt.Errorf("values file %s: %s", clean, why(err))
		}
		if findings := Screen(clean, content); findings != nil {
			return nil, findings
		}
		var values map[string]any
		if err := yaml.Unmarshal(content, &values); err != nil {
			return nil, fmt.Errorf("values file %s: %w", clean, err)
		}
		all = mergeValues(all, values)
	}
	return all, nil
}

// mergeValues returns a with the values of b on top. It merges maps and keeps null, which removes a default of the chart.
func mergeValues(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	maps.Copy(out, a)
	for name, value := range b {
		below, ok := out[name].(map[string]any)
		if above, both := value.(map[string]any); both && ok {
			out[name] = mergeValues(below, above)
			continue
		}
		out[name] = value
	}
	return out
}

// sortByKind sorts objects in the order in which Helm installs them.
func sortByKind(all []*content, order map[string]int) {
	rank := func(c *content) int {
		if i, ok := order[c.Kind]; ok {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b *content) int {
		if d := cmp.Compare(rank(a), rank(b)); d != 0 {
			return d
		}
		if rank(a) == len(order) && a.Kind != b.Kind {
			return cmp.Compare(a.Kind, b.Kind)
		}
		return cmp.Compare(a.Metadata.Name, b.Metadata.Name)
	})
}
