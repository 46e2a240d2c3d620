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
				jobs = append(jobs, j)
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
		w.result.Findings = append(w.result.Findings, findings[i]...)
		j.release.Rendered = objects[i] != nil && findings[i].Err() == nil
		own := make([]*Object, 0, len(objects[i]))
		for _, c := range objects[i] {
			o := w.object(c, &Kustomization{
				Owner: j.release.Owner, GitSource: j.object.GitSource, Environment: j.object.Environment, Cluster: j.object.Cluster,
				Targets: j.object.Targets, Suspended: j.object.Suspended || j.spec.Spec.Suspend,
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
		w.learn(objects[i], j.object.Targets)
		w.children[j.object] = append(w.children[j.object], own...)
		made = append(made, own...)
	}
	return made
}

// newJob returns the job for a HelmRelease, without its chart. If the JSON of the HelmRelease is wrong, it returns an error and a job with
// only the name.
func newJob(o *Object) (*job, error) {
	j := &job{object: o, release: &Release{Owner: Owner{KindHelmRelease, o.Namespace, o.Name}, Object: o}}
	if err := json.Unmarshal(o.JSON, &j.spec); err != nil {
		return j, err
	}
	j.release.ReleaseName, j.release.ReleaseNamespace = shortenName(j.spec.GetReleaseName()), j.spec.GetReleaseNamespace()
	return j, nil
}

// job returns the job for a HelmRelease, or nil if its chart is not in the repo.
func (w *walk) job(o *Object) *job {
	j, err := newJob(o)
	w.result.Releases = append(w.result.Releases, j.release)
	if err != nil {
		w.problem(o, diag.SeverityError, RuleDecode, err.Error())
		return nil
	}
	if rule, why := w.findChart(o, j); why != "" {
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
	if len(o.Targets) == 0 && j.spec.Spec.KubeConfig == nil {
		j.kubernetesVersion = w.mgmt.KubernetesVersion
	}
	j.configMap = func(name string) (map[string]string, bool) { return w.configMap(o.Targets, o.Namespace, name) }
	return j
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
