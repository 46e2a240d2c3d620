package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// job is a HelmRelease to render.
type job struct {
	release *Release
	object  *Object
	// targets are the workload clusters that it is rendered for; none for the management cluster.
	targets []string
	spec    helmv2.HelmRelease
	chart   *chartSource
	// kubernetesVersion of the cluster that the release is installed on, or "" if it is not known.
	kubernetesVersion string
	// planned says that init has yet to complete the repo.
	planned bool
	at      whereabouts
	// idle are the findings about its post renderers.
	idle diag.Findings
	// open says that variables of its Kustomization are secret or not in the repo, so that its values may still have some.
	open bool
	// lacks are the Secrets and ConfigMaps whose values it is rendered without.
	lacks []string
	// foreign says that the repo has its own layout.
	foreign bool
	// configMap finds the data of a ConfigMap in the namespace of the HelmRelease.
	configMap func(name string) (configMap, bool)
}

// name is a unique name of the release in the fleet.
func (j *job) name() string {
	where := j.object.Source.File
	if len(j.targets) > 0 {
		where += " on " + j.targets[0]
	}
	return fmt.Sprintf("%s (%s)", j.release.Owner, where)
}

func (j *job) finding(severity diag.Severity, rule, summary, hint string) diag.Findings {
	at := j.object.Source
	return diag.Findings{{
		Severity: severity, Rule: rule, File: at.File, Line: at.Line,
		Summary: j.release.Owner.String() + ": " + summary, Hint: hint,
	}}
}

func (j *job) failed(rule string, err error) diag.Findings {
	if findings, ok := errors.AsType[diag.Findings](err); ok {
		return findings
	}
	return j.finding(diag.SeverityError, rule, err.Error(), diag.Hint(err))
}

// renderRelease returns the objects that Helm would install, in Helm's order.
func (r *Renderer) renderRelease(j *job) ([]*content, diag.Findings) {
	objects, findings := r.renderChart(j)
	return objects, j.atRelease(findings)
}

// load returns the chart of the release.
func (j *job) load(all *charts) (*loadedChart, error) {
	if j.release.Outside != nil {
		return all.loadArchive(*j.release.Outside)
	}
	return all.load(j.release.Chart, j.planned)
}

// chartName is the chart for people.
func (j *job) chartName() string {
	if j.release.Outside != nil {
		return j.release.Outside.file()
	}
	return j.release.Chart
}

func (r *Renderer) renderChart(j *job) ([]*content, diag.Findings) {
	end, err := r.begin(j.name(), "the chart "+j.chartName(), j.at.String)
	defer end()
	if err != nil {
		return nil, j.failed(RuleLimits, err)
	}
	j.at.set("the files of the chart")
	loaded, err := j.load(r.charts)
	if err != nil {
		return nil, j.failed(RuleChart, err)
	}
	j.at.set("its values")
	values, findings := r.values(j)
	if findings.Err() != nil {
		return nil, findings
	}
	defaults, err := r.defaults(j)
	if err != nil {
		return nil, append(findings, j.failed(RuleValues, err)...)
	}
	k, err := j.key(loaded, defaults, values)
	if err != nil {
		return nil, j.failed(RuleChart, err)
	}
	if objects, ok := r.cache.get(k); ok {
		return objects, findings
	}
	var objects []*content
	var problems diag.Findings
	if j.release.Outside == nil {
		objects, problems = r.renderNew(j, k, loaded, defaults, values)
	} else {
		objects, problems = r.once.render(k, func() ([]*content, diag.Findings) { return r.renderNew(j, k, loaded, defaults, values) })
	}
	if lacks := j.lacking(values); lacks != "" && problems.Err() != nil && r.isSound(j, loaded) {
		return nil, j.excused(lacks, problems)
	}
	return objects, append(findings, problems...)
}

// isSound tells whether a chart can be rendered with some values.
func (r *Renderer) isSound(j *job, loaded *loadedChart) bool {
	c, err := loaded.parse(r.charts.schemas)
	return err == nil && j.unfit(c) == nil
}

// lacking returns what the values lack, for people; "" if nothing is known to lack.
func (j *job) lacking(values map[string]any) string {
	lacks := slices.Clone(j.lacks)
	if text, err := json.Marshal(values); err == nil && j.open && bareVariable().Match(text) {
		lacks = append(lacks, "the variables that are not in the repo")
	}
	return strings.Join(lacks, " and ")
}

// excused returns the warning in place of errors that may come of what the values lack: a required value, or a text in the place of a
// number.
func (j *job) excused(lacks string, problems diag.Findings) diag.Findings {
	first := problems[slices.IndexFunc(problems, func(f diag.Finding) bool { return f.Severity == diag.SeverityError })]
	says := strings.TrimPrefix(first.Summary, j.release.Owner.String()+": ")
	return j.finding(diag.SeverityWarning, RuleValues, "it cannot be rendered without "+lacks+", so its objects are not checked: "+says,
		"give the values that the chart demands in spec.values or in a ConfigMap of the repo, or a default in the chart")
}

// renderNew renders a release that is not in the cache.
func (r *Renderer) renderNew(j *job, k key, loaded *loadedChart, defaults, values map[string]any) ([]*content, diag.Findings) {
	j.at.set("Chart.yaml, values.yaml and values.schema.json of the chart, and of those in it")
	c, err := loaded.parse(r.charts.schemas)
	if err != nil {
		if problems, ok := errors.AsType[diag.Findings](err); ok {
			return nil, problems
		}
		return nil, diag.Findings{{
			Severity: diag.SeverityError, Rule: RuleChart,
			File: path.Join(loaded.dir, "Chart.yaml"), Summary: err.Error(),
		}}
	}
	if defaults != nil {
		// Load another copy of the chart, because other releases use the defaults of values.yaml.
		if c, err = loader.LoadFiles(loaded.files); err != nil {
			return nil, j.failed(RuleChart, err)
		}
		c.Values = defaults
	}
	objects, problems := j.install(r.repo, loaded, c, values)
	if len(problems) == 0 {
		r.cache.put(k, objects)
	}
	return objects, problems
}

// key hashes everything that the result depends on.
func (j *job) key(loaded *loadedChart, defaults, values map[string]any) (key, error) {
	install := j.spec.GetInstall()
	said, err := json.Marshal([]any{
		j.release.ReleaseName, j.release.ReleaseNamespace, j.kubernetesVersion, loaded.dir, defaults, values,
		j.spec.Spec.PostRenderers, j.spec.Spec.PostRenderStrategy, j.spec.Spec.CommonMetadata,
		install.CRDs, install.DisableHooks, install.DisableSchemaValidation,
	})
	if err != nil {
		return key{}, fmt.Errorf("values: %w", err)
	}
	return digest([]byte(cacheFormat), []byte("release"), loaded.sum[:], said), nil
}

// install renders the chart's templates and adds its CRDs.
func (j *job) install(r *repo, loaded *loadedChart, c *chart.Chart, values map[string]any) ([]*content, diag.Findings) {
	if err := j.unfit(c); err != nil {
		if _, fetched := errors.AsType[elsewhere](err); fetched && j.foreign && j.release.Outside == nil {
			return nil, j.finding(diag.SeverityWarning, RuleSource, err.Error()+": its objects are not rendered", diag.Hint(err))
		}
		return nil, j.failed(RuleChart, err)
	}
	caps, err := capabilities(j.kubernetesVersion)
	if err != nil {
		return nil, j.failed(RuleChart, err)
	}
	j.at.set("the dependencies of the chart: their conditions, aliases and import-values")
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, j.failed(RuleChart, err)
	}
	top, err := util.ToRenderValuesWithSchemaValidation(c, values, common.ReleaseOptions{
		Name: j.release.ReleaseName, Namespace: j.release.ReleaseNamespace, Revision: 1, IsInstall: true,
	}, caps, true)
	if err != nil {
		return nil, j.failed(RuleValues, err)
	}
	j.at.set("values.schema.json")
	if all, ok := top["Values"].(common.Values); ok && !j.spec.GetInstall().DisableSchemaValidation {
		if findings := j.judge(r, loaded, c, all); findings != nil {
			return nil, findings
		}
	}
	files, err := loaded.renderTemplates(c, top, &j.at)
	if err != nil {
		return nil, j.failed(RuleChart, errors.New(templateError(err)))
	}
	j.at.set("what the templates made")
	return j.objects(loaded, c, files)
}

// unfit returns the error of a chart that cannot be rendered with any values.
func (j *job) unfit(c *chart.Chart) error {
	caps, err := capabilities(j.kubernetesVersion)
	if err != nil {
		return err
	}
	if c.Metadata.KubeVersion != "" && !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, caps.KubeVersion.String()) {
		return fmt.Errorf("the chart wants Kubernetes %s, and this is %s", c.Metadata.KubeVersion, caps.KubeVersion.Version)
	}
	return missingDependencies(c)
}

// judge checks the values against the schemas of the chart and of its inner charts.
func (j *job) judge(r *repo, loaded *loadedChart, c *chart.Chart, values map[string]any) diag.Findings {
	var findings diag.Findings
	if s := loaded.schemas[string(c.Schema)]; s != nil {
		failed, err := s.Judge(values)
		if err != nil {
			return j.failed(RuleValues, err)
		}
		if failed != nil {
			findings = append(findings, j.schemaFindings(r, c, s, failed)...)
		}
	}
	for _, inner := range c.Dependencies() {
		if below, ok := values[inner.Name()].(map[string]any); ok {
			findings = append(findings, j.judge(r, loaded, inner, below)...)
		}
	}
	return findings
}

// templateError shortens an error of the engine to its innermost cause, with template and line.
func templateError(err error) string {
	text := strings.TrimSpace(err.Error())
	if i := strings.LastIndex(text, "\n"); i >= 0 && len(text) > 1000 {
		text = text[i+1:]
	}
	return strings.ReplaceAll(text, "\n", " ")
}
