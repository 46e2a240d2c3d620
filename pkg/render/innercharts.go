package render

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// What a chart may have in it. Each is far more than the charts have that people write.
const (
	maxUnpacked    = 100 << 20 // bytes in all archives below charts/, those within each other included, as Helm takes of one
	maxChartsDeep  = 20        // charts within charts
	maxInnerCharts = 2000      // counted as often as aliases and import-values repeat them
)

// unpacking looks into the archives inside a chart before Helm does. Helm would unpack them without any limit.
type unpacking struct {
	bytes  int
	places innerPlaces
}

// look refuses archives below charts/ that have too much in them, and YAML in them that is a bomb. at is where the files are in the repo,
// called what Helm calls the chart that they are.
func (u *unpacking) look(at, called string, files []*archive.BufferedFile, depth int) error {
	if depth > maxChartsDeep {
		return beyond("%s: charts are in each other more than %d deep", at, maxChartsDeep)
	}
	for _, f := range files {
		name := path.Join(at, f.Name)
		if findings := Screen(name, f.Data); depth > 0 && findings != nil && isYAML(f.Name) && !strings.Contains("/"+f.Name, "/templates/") {
			return findings
		}
		if folder := path.Dir(f.Name); path.Base(f.Name) == chartFile && path.Base(path.Dir(folder)) == "charts" {
			u.places.add(path.Join(called, path.Dir(folder), nameOf(f.Data)), path.Join(at, folder))
		}
		if path.Ext(f.Name) != ".tgz" || path.Base(path.Dir(f.Name)) != "charts" {
			continue
		}
		inner, err := archive.LoadArchiveFiles(bytes.NewReader(f.Data))
		if err != nil {
			return fmt.Errorf("%s: it is no archive of a chart: %w", name, err)
		}
		for _, file := range inner {
			if u.bytes += len(file.Data); u.bytes > maxUnpacked {
				return beyond("%s: the archives of charts in this chart have more than %d MiB in them", name, maxUnpacked>>20)
			}
		}
		below := path.Join(called, path.Dir(f.Name), path.Base(f.Name))
		for _, file := range inner {
			if file.Name == chartFile {
				below = path.Join(called, path.Dir(f.Name), nameOf(file.Data))
			}
		}
		u.places.add(below, name)
		if err := u.look(name, below, inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// chartFile says what a chart is called.
const chartFile = "Chart.yaml"

// nameOf is the name of a chart; "" where it cannot be read.
func nameOf(content []byte) string {
	var says struct {
		Name string `json:"name"`
	}
	if Screen(chartFile, content) != nil || yaml.Unmarshal(content, &says) != nil {
		return ""
	}
	return says.Name
}

// innerPlaces are where the charts in a chart stand in the repo, by what Helm calls them: charts/db stands in charts/web/charts/db-1.2.tgz.
type innerPlaces map[string]string

func (p innerPlaces) add(called, at string) {
	if len(p) < maxInnerCharts {
		p[called] = at
	}
}

// alias adds the names that a chart gives to those in it.
func (p innerPlaces) alias(c *chart.Chart) {
	for _, d := range c.Metadata.Dependencies {
		if at := p[path.Join("charts", d.Name)]; at != "" && d.Alias != "" {
			p.add(path.Join("charts", d.Alias), at)
		}
	}
}

// place is where a file stands of the chart in the folder dir, or of one in it.
func (p innerPlaces) place(dir, name string) string {
	for chart := path.Dir(name); chart != "."; chart = path.Dir(chart) {
		if at := p[chart]; at != "" {
			return at + strings.TrimPrefix(name, chart)
		}
	}
	return path.Join(dir, name)
}

// checkInnerCharts says that a chart has too many others in it, each counted as often as it is rendered, or as its values are imported.
func checkInnerCharts(c *chart.Chart) error {
	if n := innerCharts(c, 0); n > maxInnerCharts {
		return beyond("the dependencies of the chart are more than %d charts, counted as often as aliases and import-values repeat them",
			maxInnerCharts)
	}
	return nil
}

func innerCharts(c *chart.Chart, depth int) int {
	if depth > maxChartsDeep {
		return maxInnerCharts + 1
	}
	times := map[string]int{}
	for _, d := range c.Metadata.Dependencies {
		times[d.Name] = min(maxInnerCharts+1, times[d.Name]+max(1, len(d.ImportValues)))
	}
	n := 1
	for _, inner := range c.Dependencies() {
		n = min(maxInnerCharts+1, n+max(1, times[inner.Name()])*innerCharts(inner, depth+1))
	}
	return n
}
