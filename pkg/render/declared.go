package render

import (
	"bytes"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/templates"
)

// Declared renders the HelmReleases that a file declares, with content in the place of what it has, and returns what is wrong with them. Their charts
// are those in the repo, and where it lacks one, that of fleetctl. It looks at that file alone, and so costs little: a HelmRelease whose values
// come from elsewhere as well, or whose chart does, is taken for good. All renders those.
func (r *Renderer) Declared(file string, content []byte) diag.Findings {
	objects, findings := parse(file, content)
	for _, c := range objects {
		if !isFlux(c, KindHelmRelease) {
			continue
		}
		if j := r.declared(c); j != nil {
			_, problems := r.renderRelease(j)
			findings = append(findings, problems...)
		}
	}
	return findings
}

// declared is the rendering of a HelmRelease from what stands in its file; nil where that does not say enough.
func (r *Renderer) declared(c *content) *job {
	o := &Object{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, JSON: c.json, Source: c.source}
	j, err := newJob(o)
	if err != nil || j.spec.Spec.Chart == nil || len(j.spec.Spec.ValuesFrom) > 0 {
		return nil
	}
	if values := j.spec.Spec.Values; values != nil && bytes.Contains(values.Raw, []byte("${")) {
		return nil
	}
	t := j.spec.Spec.Chart.Spec
	dir, ok := inside(".", strings.TrimPrefix(t.Chart, "/"))
	if !ok || t.SourceRef.Kind != "GitRepository" && t.SourceRef.Kind != "" {
		return nil
	}
	if own := (&repo{files: templates.Charts}); !r.repo.isDir(dir) && !own.isDir(dir) {
		return nil
	}
	j.release.Chart, j.planned = dir, true
	if j.spec.Spec.KubeConfig == nil {
		j.kubernetesVersion = r.kubernetesVersionAt(c.source.File)
	}
	return j
}

// kubernetesVersionAt is that of the management cluster that a file of a cluster belongs to; "" where it is none's.
func (r *Renderer) kubernetesVersionAt(file string) string {
	for i := range r.fleet.Spec.ManagementClusters {
		m := &r.fleet.Spec.ManagementClusters[i]
		if environment, _ := placed(m, file); environment != "" {
			return m.KubernetesVersion
		}
	}
	return ""
}
