package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
)

// job is a HelmRelease to render.
type job struct {
	release *Release
	object  *Object
	spec    helmv2.HelmRelease
	chart   *chartSource
	// kubernetesVersion of the cluster that the release is installed on, or "" if it is not known.
	kubernetesVersion string
	// planned says that init has yet to complete the repo.
	planned bool
	at      whereabouts
	// configMap finds the data of a ConfigMap in the namespace of the HelmRelease.
	configMap func(name string) (map[string]string, bool)
}

// name is a unique name of the release in the fleet.
func (j *job) name() string {
	where := j.object.Source.File
	if len(j.object.Targets) > 0 {
		where += " on " + j.object.Targets[0]
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
	end, err := r.begin(j.name(), "the chart "+j.release.Chart, j.at.String)
	defer end()
	if err != nil {
		return nil, j.failed(RuleLimits, err)
	}
	j.at.set("the files of the chart")
	loaded, err := r.charts.load(j.release.Chart, j.planned)
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
	j.at.set("Chart.yaml, values.yaml and values.schema.json of the chart, and of those in it")
	c, err := loaded.parse(r.charts.schemas)
	if err != nil {
		if problems, ok := errors.AsType[diag.Findings](err); ok {
			return nil, append(findings, problems...)
		}
		return nil, append(findings, diag.Finding{
			Severity: diag.SeverityError, Rule: RuleChart,
			File: path.Join(loaded.dir, "Chart.yaml"), Summary: err.Error(),
		})
	}
	if defaults != nil {
		// Load another copy of the chart, because other releases use the defaults of values.yaml.
		if c, err = loader.LoadFiles(loaded.files); err != nil {
			return nil, append(findings, j.failed(RuleChart, err)...)
		}
		c.Values = defaults
	}
	objects, problems := j.install(r.repo, loaded, c, values)
	if len(problems) == 0 {
		r.cache.put(k, objects)
	}
	return objects, append(findings, problems...)
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
	caps, err := capabilities(j.kubernetesVersion)
	if err != nil {
		return nil, j.failed(RuleChart, err)
	}
	if c.Metadata.KubeVersion != "" && !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, caps.KubeVersion.String()) {
		return nil, j.failed(RuleChart, fmt.Errorf("the chart wants Kubernetes %s, and this is %s", c.Metadata.KubeVersion,
			caps.KubeVersion.Version))
	}
	if err := missingDependencies(c); err != nil {
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

// missingDependencies returns an error if Chart.yaml names charts that are not below charts/.
func missingDependencies(c *chart.Chart) error {
	for _, wanted := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == wanted.Name }) {
			return diag.Errorf("run `helm dependency build` and commit what it makes below charts/",
				"the chart %s depends on %s, which is not below its charts folder", c.Name(), wanted.Name)
		}
	}
	return nil
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

// schemaFindings returns the schema's refusal as findings. They point at the values in the file of the HelmRelease, if the file has them.
func (j *job) schemaFindings(r *repo, c *chart.Chart, s *valuesschema.Schema, failed *valuesschema.Refusal) diag.Findings {
	node := &yaml.Node{Kind: yaml.MappingNode, Line: j.object.Source.Line}
	if src, err := r.read(j.object.Source.File); err == nil && c.IsRoot() {
		for _, d := range split(src) {
			if line, ok := d.start(); !ok || line != j.object.Source.Line {
				continue
			}
			if documents, err := yamledit.ParseWithin(d.text, Limits); err == nil && len(documents) == 1 {
				node = documents[0]
				shift(node, d.line-1)
			}
		}
	}
	findings := fleetrepo.ValueFindings(j.object.Source.File, node, c.Name(), s.Document, failed)
	for i := range findings {
		findings[i].Rule = RuleValues
	}
	return findings
}

// shift moves the lines of nodes. It moves each node once, even if several aliases lead to it.
func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, inner := range n.Content {
		shift(inner, lines)
	}
}

// templateError shortens an error of the engine to its innermost cause, with template and line.
func templateError(err error) string {
	text := strings.TrimSpace(err.Error())
	if i := strings.LastIndex(text, "\n"); i >= 0 && len(text) > 1000 {
		text = text[i+1:]
	}
	return strings.ReplaceAll(text, "\n", " ")
}
