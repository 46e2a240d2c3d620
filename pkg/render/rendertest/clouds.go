package rendertest

import (
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// clouds gives the management clusters folders in some of their further clouds. Clusters of the other clouds are in the home folder, where
// an older fleetctl added them.
func (m *maker) clouds(fleet *v1alpha1.Fleet) {
	for i := range fleet.Spec.ManagementClusters {
		for _, l := range fleet.Layouts(&fleet.Spec.ManagementClusters[i]) {
			if !l.IsHome() && m.chance(50) {
				m.layouts = append(m.layouts, l)
			}
		}
	}
}

// layoutFor returns the layout of a management cluster that can make a cluster of a flavour: the folder of the flavour's cloud, if it has
// one, or its home.
func (m *maker) layoutFor(flavour string) layout.Layout {
	for _, l := range m.layouts {
		if !l.IsHome() && slices.Contains(scaffold.FlavoursFor(l.Cloud), flavour) {
			return l
		}
	}
	if len(m.layouts) > 1 && m.layouts[1].IsHome() && flavour != "docker" && flavour != "in-memory" &&
		flavour != "vsphere-kubeadm" {
		return m.layouts[1]
	}
	return m.layouts[0]
}
