package upgrade

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/flux"
)

// found is what a management cluster has, beside the versions.
type found struct {
	// looked tells whether the cluster was asked, and has answered.
	looked bool
	// providers are those in clusterctl's inventory. unrecorded are the Deployments of providers that are not there.
	providers  []capi.InstalledProvider
	unrecorded []appsv1.Deployment
	flux       *flux.Report
	// unlisted are the providers that fleet.yaml does not list. An upgrade leaves them as they are.
	unlisted []capi.InstalledProvider
}

// provider returns the provider of a component.
func (c *Component) provider() releases.Provider {
	return releases.Provider{Name: c.Name, Type: releases.ProviderType(c.Type)}
}

// unlistedIn returns the providers that are not among the listed ones.
func unlistedIn(providers []capi.InstalledProvider, listed []releases.Provider) []capi.InstalledProvider {
	return slices.DeleteFunc(slices.Clone(providers), func(i capi.InstalledProvider) bool {
		return slices.ContainsFunc(listed, func(w releases.Provider) bool { return w.Name == i.Name && w.Type == i.Type })
	})
}

func (p *planner) isUnlisted(c *Component) bool {
	return slices.ContainsFunc(p.found.unlisted, func(i capi.InstalledProvider) bool { return i.Label() == c.provider().Label() })
}

// isMissing tells whether the cluster does not have a component that it should have.
func (p *planner) isMissing(c *Component) bool {
	switch {
	case !p.found.looked, c.Installed != "", c.Type == TypeKubernetes, c.Type == TypeFeature, c.Type == TypeCertManager && p.foreign:
		return false
	}
	return c.Type != TypeFlux || !p.found.flux.Installed
}

// noteFound notes what the cluster lacks, what it has beside fleet.yaml, and what is not healthy there.
func (p *planner) noteFound() {
	for i := range p.plan.Components {
		c := &p.plan.Components[i]
		if p.isMissing(c) {
			c.note(p.whyMissing(c))
		}
		if p.isUnlisted(c) {
			c.note("fleet.yaml does not list it: it stays as it is")
		}
		if reason := p.unhealthy(c); reason != "" {
			c.note("it is not healthy, and an upgrade goes on to the next component only when it is: " + reason)
		}
	}
}

// whyMissing says what the cluster has of a component that is not installed there. An interrupted installation leaves Deployments of a
// provider that is not in the inventory. So does whoever deletes its entry there, and then nobody knows which version the Deployments have.
func (p *planner) whyMissing(c *Component) string {
	for i := range p.found.unrecorded {
		d := &p.found.unrecorded[i]
		containers := d.Spec.Template.Spec.Containers
		if d.Labels[clusterv1.ProviderNameLabel] == c.provider().Label() && len(containers) > 0 {
			return fmt.Sprintf("clusterctl's inventory does not have it, but the Deployment %s runs %s: `fleetctl upgrade apply` "+
				"installs %s over it, also over a newer version", d.Name, containers[0].Image, cmp.Or(c.Declared, c.Newest, "it"))
		}
	}
	return "it is not installed on " + p.mgmt.Name
}

// unhealthy returns the reason why an installed component is not healthy, or "".
func (p *planner) unhealthy(c *Component) string {
	if c.Type == TypeFlux && p.found.flux != nil {
		for _, controller := range p.found.flux.Controllers {
			if !controller.Ready {
				return "Deployment " + controller.Name + ": " + controller.Reason
			}
		}
	}
	for i := range p.found.providers {
		if installed := &p.found.providers[i]; installed.Label() == c.provider().Label() && !installed.Ready {
			return installed.Reason
		}
	}
	return ""
}
