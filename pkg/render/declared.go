package render

import (
	"bytes"
	"path"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/templates"
)

// Declared renders the HelmReleases of a file as if the file had this content, and returns their problems. It takes charts from the repo,
// or fleetctl's own chart if the repo lacks one. It reads this file alone, and is therefore quick: it skips a HelmRelease whose chart or
// values are not all in the file and the chart's folder. All renders these releases, too.
func (r *Renderer) Declared(file string, content []byte) diag.Findings {
	objects, findings := parse(file, content)
	for _, c := range objects {
		if !isFlux(c, KindHelmRelease) {
			continue
		}
		if j := r.declared(c); j != nil {
			_, problems := r.renderRelease(j)
			findings = append(findings, new(parts).addRelease(j, problems)...)
		}
	}
	return findings
}

// declared returns the job for a HelmRelease from its file alone, or nil if the file does not have enough.
func (r *Renderer) declared(c *content) *job {
	o := &Object{
		APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name,
		JSON: c.json, Source: c.source,
	}
	j, err := newJob(o)
	if err != nil || len(j.spec.Spec.ValuesFrom) > 0 {
		return nil
	}
	if values := j.spec.Spec.Values; values != nil && bytes.Contains(values.Raw, []byte("${")) {
		return nil
	}
	if j.chart = ownChart(&j.spec.Spec, o.Namespace); j.chart == nil {
		j.chart = r.sharedChart(c.source.File, j.spec.Spec.ChartRef)
	}
	if j.chart == nil || j.chart.sourceKind != "GitRepository" {
		return nil
	}
	dir, ok := inside(".", strings.TrimPrefix(j.chart.chart, "/"))
	if !ok {
		return nil
	}
	if own := (&repo{files: templates.Charts}); !r.repo.isDir(dir) && !own.isDir(dir) {
		return nil
	}
	j.release.Chart, j.planned = dir, true
	if j.spec.Spec.KubeConfig == nil {
		if m, _ := r.placeOf(c.source.File); m != nil {
			j.kubernetesVersion = m.KubernetesVersion
		}
	}
	return j
}

// sharedChart returns the source of the chart that the clusters of an environment share, by its name, because the file of the chart may not
// exist yet. It returns nil if ref is no such chart.
func (r *Renderer) sharedChart(file string, ref *helmv2.CrossNamespaceSourceReference) *chartSource {
	if ref == nil || ref.Kind != "HelmChart" || ref.Namespace != fluxSystem {
		return nil
	}
	_, environment := r.placeOf(file)
	flavour, ok := layout.FlavourOf(environment, ref.Name)
	if environment == "" || !ok {
		return nil
	}
	return &chartSource{
		chart: path.Join(layout.ChartsDir, flavour), sourceKind: "GitRepository", sourceNamespace: fluxSystem,
		sourceName: fluxSystem,
	}
}

// placeOf returns the management cluster and the environment of a cluster's file. It returns nil if the file belongs to none.
func (r *Renderer) placeOf(file string) (*v1alpha1.ManagementCluster, string) {
	for i := range r.fleet.Spec.ManagementClusters {
		m := &r.fleet.Spec.ManagementClusters[i]
		if environment, _ := placed(r.fleet.Layouts(m), file); environment != "" {
			return m, environment
		}
	}
	return nil, ""
}
