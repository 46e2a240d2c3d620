package render

import (
	"fmt"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// The limits for the inner charts of a chart. They are far above the needs of real charts.
const (
	maxUnpacked    = 100 << 20 // bytes in all archives below charts/, including archives in archives; Helm has the same limit for one archive
	maxChartsDeep  = 20        // charts within charts
	maxInnerCharts = 2000      // a chart that aliases and import-values repeat counts each time
)

// unpacking checks the archives inside a chart before Helm unpacks them, which it does without a limit.
type unpacking struct {
	bytes  int
	places innerPlaces
}

// look refuses archives below charts/ whose content is too large, and YAML bombs in them. at is the path of the files in the repo. called
// is Helm's name for their chart.
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
		inner, err := unpackArchive(f.Data)
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

// chartFile is the file with the name of a chart.
const chartFile = "Chart.yaml"

// nameOf returns the name of a chart, or "" if it cannot be read.
func nameOf(content []byte) string {
	var says struct {
		Name string `json:"name"`
	}
	if Screen(chartFile, content) != nil || yaml.Unmarshal(content, &says) != nil {
		return ""
	}
	return says.Name
}

// innerPlaces has the paths of inner charts in the repo by Helm's names for them. For example, the chart charts/db is in
// charts/web/charts/db-1.2.tgz.
type innerPlaces map[string]string

func (p innerPlaces) add(called, at string) {
	if len(p) < maxInnerCharts {
		p[called] = at
	}
}

// alias adds the aliases that a chart gives to its inner charts.
func (p innerPlaces) alias(c *chart.Chart) {
	for _, d := range c.Metadata.Dependencies {
		if at := p[path.Join("charts", d.Name)]; at != "" && d.Alias != "" {
			p.add(path.Join("charts", d.Alias), at)
		}
	}
}

// place returns the path of a file of the chart in the folder dir, or of one of its inner charts.
func (p innerPlaces) place(dir, name string) string {
	for chart := path.Dir(name); chart != "."; chart = path.Dir(chart) {
		if at := p[chart]; at != "" {
			return at + strings.TrimPrefix(name, chart)
		}
	}
	return path.Join(dir, name)
}

// checkInnerCharts returns an error if a chart has too many inner charts. A chart counts each time that it is rendered or that its values
// are imported.
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
