package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// sharedCharts checks the HelmCharts that the clusters of an environment share: their charts must exist, and their names must follow from
// the charts.
func (l *placement) sharedCharts(m *v1alpha1.ManagementCluster, environment, dir string) {
	for _, f := range l.tree.below(dir) {
		if path.Dir(f.path) != dir {
			continue
		}
		for _, d := range f.documents {
			chart := yamledit.Find(d.node, "spec", "chart")
			if kindOf(d) != "HelmChart" || chart == nil || !strings.HasPrefix(chart.Value, "./") {
				continue
			}
			problem := l.missingChart(m, f, "spec.chart", chart, path.Clean(chart.Value))
			// no finding is about an excluded file, so the clusters that use the chart report it
			l.charts[[2]string{dir, nameOf(d.object)}] = problem == nil || f.excluded
			if problem != nil {
				l.add(*problem)
				continue
			}
			wanted := layout.ChartName(environment, path.Base(chart.Value))
			if name := yamledit.Find(d.node, "metadata", "name"); name != nil && name.Value != wanted {
				l.add(finding(RuleChartName, f.path, name.Line, name.Column,
					fmt.Sprintf("metadata.name: the chart %.80s of environment %s is called %.80q", chart.Value, environment, name.Value),
					"call it "+wanted+", here and in the chartRef of clusters"))
			}
		}
	}
}

// chart checks that the chart of the cluster exists and belongs to the cluster's environment.
func (c *cluster) chart(l *placement) {
	if own := yamledit.Find(c.release.node, "spec", "chart", "spec", "chart"); own != nil {
		if strings.HasPrefix(own.Value, "./") { // other charts are not in the repo
			if problem := l.missingChart(c.mgmt, c.file, "spec.chart.spec.chart", own, path.Clean(own.Value)); problem != nil {
				c.findings = append(c.findings, *problem)
			}
		}
		return
	}
	ref := mapping.Fields(c.release.object).In("spec", "chartRef")
	name := yamledit.Find(c.release.node, "spec", "chartRef", "name")
	if name == nil || ref.Text("kind") != "HelmChart" || ref.Text("namespace") != "flux-system" {
		return // its schema reports a HelmRelease without a chart
	}
	if there, known := l.charts[[2]string{path.Dir(c.dir), name.Value}]; known {
		c.told = !there
		return
	}
	if _, ok := l.fleet.Environment(c.environment); !ok {
		return // that is the finding
	}
	for _, e := range l.fleet.Spec.Environments {
		flavour, ok := layout.FlavourOf(e.Name, name.Value)
		if ok && e.Name != c.environment && slices.Contains(l.subfolders(layout.ChartsDir), flavour) {
			c.findings = append(c.findings, finding(RuleChartName, c.file.path, name.Line, name.Column,
				fmt.Sprintf("spec.chartRef.name: %.80q is the chart of environment %s, and cluster %s is in %s", name.Value, e.Name,
					c.name, c.environment),
				"name "+layout.ChartName(c.environment, flavour)))
			return
		}
	}
}

// missingChart is the finding about a field with the folder of a chart that does not exist. It is nil if the chart exists. A repo that no
// management cluster follows yet gets its charts from `fleetctl init`.
func (l *placement) missingChart(m *v1alpha1.ManagementCluster, f *file, field string, at *yaml.Node, dir string) *diag.Finding {
	if l.tree.has(path.Join(dir, "Chart.yaml")) {
		return nil
	}
	flavour := path.Base(dir)
	brought, err := scaffold.Flavours()
	if err == nil && !l.initialised(m) && path.Dir(dir) == layout.ChartsDir && slices.Contains(brought, flavour) {
		return nil
	}
	hint := "`fleetctl provider add` brings the charts of a provider along"
	if nearest := diag.Nearest(flavour, l.subfolders(layout.ChartsDir)); nearest != "" {
		hint = "did you mean ./" + path.Join(layout.ChartsDir, nearest) + "?"
	}
	problem := finding(RuleMissingChart, f.path, at.Line, at.Column, fmt.Sprintf("%s: there is no chart in %.80s", field, dir), hint)
	return &problem
}
