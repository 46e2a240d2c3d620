package upgrade

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
)

// chart is the Helm chart of a feature, and the Kubernetes versions of the clusters that have the feature.
type chart struct {
	declared   v1alpha1.LockedFeature
	kubernetes []string
}

// listFeatures lists the features from charts. The management cluster knows the installed version only of its own features.
func (p *planner) listFeatures() error {
	declared, err := p.o.Repo.FeatureCharts()
	if err != nil {
		return err
	}
	if len(declared) == 0 {
		return nil
	}
	features, err := p.o.Repo.Features()
	if err != nil {
		return err
	}
	clusters, _, err := p.o.Repo.Clusters() // `validate` reports the findings
	if err != nil {
		return err
	}
	p.plan.charts = map[string]chart{}
	for _, d := range declared {
		i := slices.IndexFunc(features, func(f fleetrepo.Feature) bool { return f.Name == d.Name })
		p.plan.charts[d.Name] = chart{d, p.kubernetesOf(features[i], clusters)}
		if slices.Contains(features[i].ManagementClusters, p.mgmt.Name) {
			p.versions[TypeFeature+"/"+d.Name] = p.installedRelease(d.Name)
		}
		p.list(d.Name, TypeFeature, d.Version)
	}
	return nil
}

// kubernetesOf returns the Kubernetes versions of the clusters that have a feature, without those that are not declared.
func (p *planner) kubernetesOf(f fleetrepo.Feature, clusters []fleetrepo.Cluster) (out []string) {
	called := fleetrepo.Called(clusters)
	for _, c := range clusters {
		if slices.Contains(f.Environments, c.Environment) || slices.Contains(f.Clusters, called(c)) {
			out = append(out, c.KubernetesVersion)
		}
	}
	if slices.Contains(f.ManagementClusters, p.mgmt.Name) {
		out = append(out, p.declaredKubernetes())
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(version string) bool { return version == "" })
}

// installedRelease returns the version of a feature's chart on the management cluster, or "".
func (p *planner) installedRelease(name string) string {
	if p.found.flux == nil {
		return ""
	}
	for _, o := range p.found.flux.HelmReleases {
		if o.Name == name && o.Namespace == flux.Namespace && !o.Remote && o.Workload == "" {
			return o.Revision
		}
	}
	return ""
}

// judgeFeature finds out the newest version of a feature's chart that fits.
func (p *planner) judgeFeature(ctx context.Context, c *Component) error {
	of := p.plan.charts[c.Name]
	found, err := p.reader.NewestChart(ctx, of.declared, of.kubernetes)
	if errors.Is(err, components.ErrNotInBundle) {
		c.note("the bundle does not have its chart")
		return nil
	}
	if err != nil {
		return err
	}
	c.Newest = found.Version
	p.noteFeatureChange(c)
	if found.Newer != "" {
		move := diag.ShellCommand("fleetctl", "feature", "add", c.Name, "--chart", of.declared.Chart, "--version",
			strings.ReplaceAll(found.Newer, "_", "+"))
		c.note(found.Newer + " is available, and " + found.Why + ": `" + move + "` moves to it")
	}
	return nil
}

// noteFeatureChange notes that no command brings a feature's declared version to the cluster.
func (p *planner) noteFeatureChange(c *Component) {
	if c.Changes() {
		c.note("Flux brings the version of the fleet repo to " + p.mgmt.Name)
	}
}

// sameChart tells whether two texts mean the same version of a chart. Flux appends a part of its digest to the version of a chart from a
// registry, and Helm accepts a version with and without the v.
func sameChart(a, b string) bool {
	plain := func(version string) string {
		version, _, _ = strings.Cut(strings.ReplaceAll(version, "_", "+"), "+")
		return strings.TrimPrefix(version, "v")
	}
	return plain(a) == plain(b)
}
