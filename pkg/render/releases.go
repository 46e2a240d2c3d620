package render

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// releases renders the HelmReleases among objects concurrently, and returns the objects of their charts.
func (w *walk) releases(ctx context.Context, all []*Object) []*Object {
	var jobs []*job
	for _, o := range all {
		if isFluxKind(o.APIVersion, o.Kind, KindHelmRelease) && w.scope.holds(o) {
			if j := w.job(o); j != nil {
				jobs = append(jobs, w.perValues(j)...)
			}
		}
	}
	objects, findings := make([][]*content, len(jobs)), make([]diag.Findings, len(jobs))
	numbers := make([]int, len(jobs))
	for i := range numbers {
		numbers[i] = i
	}
	each(numbers, func(i int) {
		if ctx.Err() == nil {
			objects[i], findings[i] = w.r.renderRelease(jobs[i])
		}
	})
	var made []*Object
	for i, j := range jobs {
		w.result.Findings = append(w.result.Findings, w.r.builds.parts.addRelease(j, findings[i])...)
		first := i == 0 || jobs[i-1].release != j.release
		j.release.Rendered = objects[i] != nil && findings[i].Err() == nil && (first || j.release.Rendered)
		own := make([]*Object, 0, len(objects[i]))
		for _, c := range objects[i] {
			o := w.object(c, &Kustomization{
				Owner: j.release.Owner, GitSource: j.object.GitSource, Environment: j.object.Environment, Cluster: j.object.Cluster,
				Targets: j.targets, Suspended: j.object.Suspended || j.spec.Spec.Suspend,
			})
			o.Source = j.object.Source // in an earlier run, which filled the cache, the HelmRelease may have been in another place
			if target := targetOf(j.spec.Spec.KubeConfig, j.object.Namespace); target != "" {
				o.Targets = []string{target}
			}
			own = append(own, o)
		}
		if beyond := w.total.add(j.release.Owner, j.object.Source, own, 0); beyond != nil {
			w.result.Findings, j.release.Rendered = append(w.result.Findings, beyond...), false
			continue
		}
		w.learn(objects[i], j.targets)
		w.children[j.object] = append(w.children[j.object], own...)
		made = append(made, own...)
	}
	return made
}

// perValues returns the jobs for a HelmRelease that several workload clusters share. Clusters with equal ConfigMaps of values share one
// job. The HelmRelease names the same ConfigMap for every cluster, but the content may differ from cluster to cluster.
func (w *walk) perValues(j *job) []*job {
	if len(j.targets) < 2 || len(j.spec.Spec.ValuesFrom) == 0 {
		return []*job{j}
	}
	var all []*job
	byValues := map[key]*job{}
	for _, target := range j.targets {
		var parts [][]byte
		for _, from := range j.spec.Spec.ValuesFrom {
			data, ok := w.configMap([]string{target}, j.object.Namespace, from.Name)
			text, has := data[from.GetValuesKey()]
			parts = append(parts, []byte(text), fmt.Append(nil, ok, has))
		}
		id := digest(parts...)
		if like := byValues[id]; like != nil {
			like.targets = append(like.targets, target)
			continue
		}
		own := &job{
			release: j.release, object: j.object, targets: []string{target}, spec: j.spec, chart: j.chart,
			kubernetesVersion: j.kubernetesVersion, planned: j.planned, open: j.open, foreign: j.foreign,
			configMap: w.configMapsOf([]string{target}, j.object.Namespace),
		}
		byValues[id] = own
		all = append(all, own)
	}
	return all
}

// configMapsOf finds the ConfigMaps in a namespace of the first target.
func (w *walk) configMapsOf(targets []string, namespace string) func(name string) (configMap, bool) {
	return func(name string) (configMap, bool) {
		found, ok := w.configMaps[lookupKey(targets, namespace, name)]
		return found, ok
	}
}

// newJob returns the job for a HelmRelease, without its chart. If the JSON of the HelmRelease is wrong, it returns an error and a job with
// only the name.
func newJob(o *Object) (*job, error) {
	j := &job{object: o, targets: o.Targets, release: &Release{Owner: Owner{KindHelmRelease, o.Namespace, o.Name}, Object: o}}
	if err := json.Unmarshal(o.JSON, &j.spec); err != nil {
		return j, err
	}
	j.release.ReleaseName, j.release.ReleaseNamespace = shortenName(j.spec.GetReleaseName()), j.spec.GetReleaseNamespace()
	return j, nil
}

// job returns the job for a HelmRelease, or nil if its chart is not in the repo.
func (w *walk) job(o *Object) *job {
	j, err := newJob(o)
	if err == nil && w.awaitChart(o, j) {
		return nil
	}
	w.result.Releases = append(w.result.Releases, j.release)
	if err != nil {
		w.problem(o, diag.SeverityError, RuleDecode, err.Error())
		return nil
	}
	rule, why := w.findChart(o, j)
	if j.release.Outside = w.outside(o, j); j.release.Outside != nil {
		if _, ok := w.r.getOutside(*j.release.Outside); ok {
			w.complete(j)
			return j
		}
	}
	if why != "" {
		w.problem(o, diag.SeverityWarning, rule, why+": its objects are not rendered")
		return nil
	}
	if why := w.foreign(o.Targets, j.chart.sourceKind, j.chart.sourceNamespace, j.chart.sourceName); why != "" {
		w.problem(o, diag.SeverityWarning, RuleSource, strings.Replace(why, "it comes", "its chart comes", 1)+": its objects are not rendered")
		return nil
	}
	dir, ok := inside(".", strings.TrimPrefix(j.chart.chart, "/"))
	if !ok {
		w.problem(o, diag.SeverityError, RulePath, fmt.Sprintf("the chart %q leads out of the repo", j.chart.chart))
		return nil
	}
	j.release.Chart, j.planned = dir, w.beforeInit()
	w.complete(j)
	return j
}

// complete adds what the release gets from the cluster.
func (w *walk) complete(j *job) {
	if len(j.targets) == 0 && j.spec.Spec.KubeConfig == nil {
		j.kubernetesVersion = w.mgmt.KubernetesVersion
	}
	j.configMap = w.configMapsOf(j.targets, j.object.Namespace)
	j.open, j.foreign = w.open[j.object.Owner], w.r.fleet.HasPaths()
}

// findChart finds the chart of a HelmRelease. If it cannot, it returns the reason and the rule of the finding.
func (w *walk) findChart(o *Object, j *job) (rule, why string) {
	ref := j.spec.Spec.ChartRef
	if j.chart = ownChart(&j.spec.Spec, o.Namespace); j.chart != nil {
		return "", ""
	}
	if ref == nil {
		return RuleSource, "it has no chart"
	}
	if ref.Kind != "HelmChart" {
		return RuleSource, fmt.Sprintf("its chart comes from the %s %s", ref.Kind, ref.Name)
	}
	if j.chart = w.charts[lookupKey(o.Targets, cmp.Or(ref.Namespace, o.Namespace), ref.Name)]; j.chart == nil {
		return RuleChartRef, fmt.Sprintf("there is no HelmChart %s", ref.Name)
	}
	return "", ""
}
