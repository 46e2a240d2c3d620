package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/hosts"
)

// noteSkew notes the parts of Cluster API that would run beside another minor version of its core.
func (p *planner) noteSkew() {
	core := slices.IndexFunc(p.plan.Components, func(c Component) bool { return c.Type == string(releases.Core) })
	if core < 0 {
		return
	}
	wanted := wantedVersion(&p.plan.Components[core])
	for i := range p.plan.Components {
		c := &p.plan.Components[i]
		have := wantedVersion(c)
		if !releases.OfCore(releases.Provider{Name: c.Name, Type: releases.ProviderType(c.Type)}) || releases.SameMinor(have, wanted) {
			continue
		}
		c.note(fmt.Sprintf("%s beside Cluster API %s is a combination that nobody tests: give both the same version", have, wanted))
	}
}

// wantedVersion is the version that a component has after the upgrade.
func wantedVersion(c *Component) string { return cmp.Or(c.Declared, c.Installed) }

// note adds a note for the reader.
func (c *Component) note(text string) {
	if c.Note != "" {
		c.Note += "; "
	}
	c.Note += text
}

// declaredKubernetes is the version of Kubernetes that the fleet repo declares for the management cluster. If that is a workload cluster,
// the file of this cluster declares it. A cluster of somebody else has the version that it has. In both cases the field of fleet.yaml is of
// no use.
func (p *planner) declaredKubernetes() string {
	if p.mgmt.Host.Type == v1alpha1.HostWorkload {
		if c, err := p.o.Repo.Cluster(p.mgmt.Name); err == nil { // another repo may declare it
			return c.KubernetesVersion
		}
		return ""
	}
	if hosts.TraitsOf(p.mgmt.Host, "").Elsewhere {
		return ""
	}
	return p.mgmt.KubernetesVersion
}

// judgeKubernetes says what to do about the host's Kubernetes, which fleetctl does not upgrade.
func (p *planner) judgeKubernetes(c *Component) {
	traits := hosts.TraitsOf(p.mgmt.Host, "")
	names := []string{traits.NodeImage}
	for _, program := range hosts.Programs(p.mgmt.Host, traits.KubernetesVersion) {
		if program.Version == traits.KubernetesVersion { // the other components do not belong to Kubernetes
			names = append(names, program.Image)
		}
	}
	c.Newest = p.reader.KubernetesVersion(traits.KubernetesVersion, names...)
	have, _, _ := strings.Cut(c.Installed, "+") // what a distribution appends is no version of Kubernetes
	if have != "" && releases.IsOlder(have, capi.MinimumKubernetes) {
		c.Against = append(c.Against, fmt.Sprintf("Cluster API needs %s or newer on a management cluster", capi.MinimumKubernetes))
	}
	switch {
	case p.mgmt.Host.Type == v1alpha1.HostWorkload:
		c.Newest = ""
		c.Note = fmt.Sprintf("`fleetctl cluster upgrade %s` changes it", p.mgmt.Name)
		if c.Changes() {
			c.Replaces = append(c.Replaces, "all machines of the cluster "+p.mgmt.Name)
		}
	case traits.Elsewhere:
		c.Newest = ""
		c.Note = "who runs the cluster upgrades it"
	default:
		c.Note = "it stays for the host's life: hand the clusters over to a new management cluster"
	}
}
