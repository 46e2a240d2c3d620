package rendertest

import (
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// clouds gives the management clusters folders in some of their further clouds. Clusters of the others stand in the homes, as those that an
// older fleetctl has added.
func (m *maker) clouds(fleet *v1alpha1.Fleet) {
	for i := range fleet.Spec.ManagementClusters {
		for _, l := range fleet.Layouts(&fleet.Spec.ManagementClusters[i]) {
			if !l.IsHome() && m.chance(50) {
				m.layouts = append(m.layouts, l)
			}
		}
	}
}

// layoutFor is the management cluster that can make a cluster of a flavour, in the folder of its cloud where it has one.
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
