package v1alpha1

import (
	"errors"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// ErrNoManagementCluster is in the error of Fleet.ManagementCluster if the fleet has no management cluster of the name.
var ErrNoManagementCluster = errors.New("no such management cluster")

// NoCloud is the folder of a management cluster without an infrastructure provider.
const NoCloud = "none"

// HasPaths tells whether the repo has folders of its own layout, because it is older than its use of fleetctl. A management cluster that
// `fleetctl management add` writes later has fleetctl's layout beside them.
func (f *Fleet) HasPaths() bool {
	return slices.ContainsFunc(f.Spec.ManagementClusters, func(m ManagementCluster) bool { return m.Path != "" })
}

// ManagementCluster returns a pointer to the management cluster of this name in f. An empty name stands for the only management cluster.
// The error lists the names to choose from.
func (f *Fleet) ManagementCluster(name string) (*ManagementCluster, error) {
	all := f.Spec.ManagementClusters
	if name == "" && len(all) == 1 {
		return &all[0], nil
	}
	names := make([]string, 0, len(all))
	for i := range all {
		if name != "" && all[i].Name == name {
			return &all[i], nil
		}
		names = append(names, all[i].Name)
	}
	choices := strings.Join(names, ", ")
	switch {
	case len(all) == 0:
		return nil, diag.Errorf("add one under spec.managementClusters", "%w: fleet %s declares none", ErrNoManagementCluster, f.Metadata.Name)
	case name == "":
		return nil, diag.Usage("choose one with --management: "+choices, "fleet %s has %s", f.Metadata.Name,
			plain.Count(len(all), "management cluster"))
	}
	return nil, UnknownManagementCluster(name, names)
}

// UnknownManagementCluster is the error for a name that no management cluster has. Its hint has the known names to choose from.
func UnknownManagementCluster(name string, known []string) error {
	return &diag.Error{
		Op: "find management cluster " + name, Err: ErrNoManagementCluster, Hint: diag.Among(name, known), Code: diag.ExitUsage,
	}
}

// Dir returns the folder of the management cluster's own configuration in the fleet repo.
func (m *ManagementCluster) Dir() string { return m.Layout().Management() }

// Layout returns the folders of the management cluster, and of the workload clusters in its home, in the fleet repo. Fleet.Layouts returns
// those of its other clouds too. The result is the same before and after SetDefaults.
func (m *ManagementCluster) Layout() layout.Layout {
	cloud, generation := m.Cloud, m.Generation
	if cloud == "" {
		cloud = m.defaultCloud()
	}
	if generation == "" {
		generation = defaultGeneration
	}
	return layout.Layout{Cloud: cloud, Generation: generation, Path: layout.CleanPath(m.Path)}
}

func (m *ManagementCluster) defaultCloud() string {
	for _, p := range m.Providers {
		if p.effectiveType() == ProviderInfrastructure {
			return p.Name
		}
	}
	return NoCloud
}

// effectiveType returns the type, or the default type.
func (p Provider) effectiveType() ProviderType {
	if p.Type == "" {
		return ProviderInfrastructure
	}
	return p.Type
}

// EnvironmentNames returns the names of the environments, in the order of fleet.yaml.
func (f *Fleet) EnvironmentNames() []string {
	names := make([]string, 0, len(f.Spec.Environments))
	for _, e := range f.Spec.Environments {
		names = append(names, e.Name)
	}
	return names
}

// ManagementClusterNames returns the names of the management clusters, in the order of fleet.yaml.
func (f *Fleet) ManagementClusterNames() []string {
	names := make([]string, 0, len(f.Spec.ManagementClusters))
	for i := range f.Spec.ManagementClusters {
		names = append(names, f.Spec.ManagementClusters[i].Name)
	}
	return names
}
