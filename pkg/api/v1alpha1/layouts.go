package v1alpha1

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

// Layouts are where a management cluster of the fleet and its workload clusters stand in the fleet repo: one for each cloud in which it
// makes clusters, its home first. They are the same before and after SetDefaults.
func (f *Fleet) Layouts(m *ManagementCluster) []layout.Layout {
	all := []layout.Layout{m.Layout()}
	for _, p := range m.Providers {
		if l := f.LayoutFor(m, p.Name); p.effectiveType() == ProviderInfrastructure && !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}

// LayoutFor is where a management cluster's workload clusters of an infrastructure provider stand: in the cloud of that provider. It is the
// home of the management cluster for the provider that the home is for, for a provider that the management cluster does not have, and
// where another management cluster of the fleet has the folder of that cloud and generation.
func (f *Fleet) LayoutFor(m *ManagementCluster, provider string) layout.Layout {
	home := m.Layout()
	if provider == m.HomeProvider() || !m.hasInfrastructure(provider) {
		return home
	}
	l := home
	l.Cloud, l.Home = provider, home.Cloud
	earlier := true
	for i := range f.Spec.ManagementClusters {
		other := &f.Spec.ManagementClusters[i]
		if other.Name == m.Name {
			earlier = false
		} else if other.Layout().Owned() == l.Owned() || earlier && other.alsoMakes(provider, l.Generation) {
			return home
		}
	}
	return l
}

// LayoutOf is the one of a management cluster's layouts in whose folder a file stands; the home where it is in none of them.
func LayoutOf(all []layout.Layout, file string) layout.Layout {
	for _, l := range all[1:] {
		if strings.HasPrefix(file, l.Owned()+"/") {
			return l
		}
	}
	return all[0]
}

// alsoMakes tells whether a management cluster of a generation makes clusters of a provider that its home is not for.
func (m *ManagementCluster) alsoMakes(provider, generation string) bool {
	return m.Layout().Generation == generation && provider != m.HomeProvider() && m.hasInfrastructure(provider)
}

// HomeProvider is the infrastructure provider whose clusters stand in the management cluster's home: the one that the home is called
// after, or else the first.
func (m *ManagementCluster) HomeProvider() string {
	if home := m.Layout().Cloud; m.hasInfrastructure(home) {
		return home
	}
	return m.defaultCloud()
}

func (m *ManagementCluster) hasInfrastructure(name string) bool {
	return slices.ContainsFunc(m.Providers, func(p Provider) bool {
		return p.Name == name && p.effectiveType() == ProviderInfrastructure
	})
}
