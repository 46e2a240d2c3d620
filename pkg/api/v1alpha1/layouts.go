package v1alpha1

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

// Layouts returns the folders of a management cluster and its workload clusters in the fleet repo: its home first, then one layout for each
// other cloud in which it makes clusters. The result is the same before and after SetDefaults.
func (f *Fleet) Layouts(m *ManagementCluster) []layout.Layout {
	all := []layout.Layout{m.Layout()}
	for _, p := range m.Providers {
		if l := f.LayoutFor(m, p.Name); p.effectiveType() == ProviderInfrastructure && !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}

// LayoutFor returns the layout of a management cluster's workload clusters that use this infrastructure provider. It is the folder of the
// provider's cloud, or the home of the management cluster in these cases: the home is for this provider; the management cluster does not
// have the provider; or another management cluster of the fleet has the folder of this cloud and generation.
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

// LayoutOf returns the layout whose folder contains a file. It returns the first layout, the home, if none does.
func LayoutOf(all []layout.Layout, file string) layout.Layout {
	for _, l := range all[1:] {
		if strings.HasPrefix(file, l.Owned()+"/") {
			return l
		}
	}
	return all[0]
}

// alsoMakes tells whether a management cluster of this generation makes clusters of the provider, and its home is for another provider.
func (m *ManagementCluster) alsoMakes(provider, generation string) bool {
	return m.Layout().Generation == generation && provider != m.HomeProvider() && m.hasInfrastructure(provider)
}

// HomeProvider returns the infrastructure provider whose clusters are in the management cluster's home: the provider with the name of the
// home's cloud, or else the first provider.
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
