package fleetrepo

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Provider is a Cluster API provider of a management cluster, as fleet.yaml lists it.
type Provider struct {
	ManagementCluster string                `json:"managementCluster"`
	Name              string                `json:"name"`
	Type              v1alpha1.ProviderType `json:"type"`
	// Version is empty if fleetctl init is to choose it.
	Version string `json:"version,omitempty"`
}

// Providers lists the providers of all management clusters, in the order of fleet.yaml. Providers that every management
// cluster has anyway are included only if the file names them.
func (r *Repo) Providers() []Provider {
	all := []Provider{}
	for _, m := range r.Fleet.Spec.ManagementClusters {
		for _, p := range m.Providers {
			all = append(all, Provider{m.Name, p.Name, TypeOf(p), p.Version})
		}
	}
	return all
}

// TypeOf returns the type of a provider. Without a type it is an infrastructure provider.
func TypeOf(p v1alpha1.Provider) v1alpha1.ProviderType {
	if p.Type == "" {
		return v1alpha1.ProviderInfrastructure
	}
	return p.Type
}

// indexOf returns the index of the provider with p's name and type in a management cluster's list; -1 if it is not
// listed.
func indexOf(m *v1alpha1.ManagementCluster, p v1alpha1.Provider) int {
	return slices.IndexFunc(m.Providers, func(o v1alpha1.Provider) bool { return o.Name == p.Name && TypeOf(o) == TypeOf(p) })
}

// AddProvider adds a provider of a management cluster ("" means the only one) to fleet.yaml, or changes its version, and adds the charts
// of its flavours. With an empty version, an existing version stays, and otherwise fleetctl init chooses one.
func (r *Repo) AddProvider(cluster string, p v1alpha1.Provider) (*Edit, error) {
	m, err := r.managementCluster(cluster)
	if err != nil {
		return nil, err
	}
	src, err := r.read(v1alpha1.FileName)
	if err != nil {
		return nil, err
	}
	there := indexOf(m, p) >= 0
	e := &Edit{Summary: fmt.Sprintf("Add provider %s to %s", p.Name, m.Name)}
	switch {
	case p.Version != "":
		src, err = v1alpha1.SetProviderVersion(src, m.Name, TypeOf(p), p.Name, p.Version)
		if there {
			e.Summary = fmt.Sprintf("Set provider %s of %s to %s", p.Name, m.Name, p.Version)
		}
	case !there:
		src, err = r.appendProvider(src, m, p)
	}
	if err == nil && !there && TypeOf(p) == v1alpha1.ProviderInfrastructure {
		src, err = r.nameCloud(e, src, m, p.Name)
	}
	if err != nil {
		return nil, diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "add the provider in an editor")
	}
	if _, err := v1alpha1.Decode(v1alpha1.FileName, src); err != nil {
		return nil, r.refusedProvider(err, m, p)
	}
	e.Changes.Write(manifest.File{Path: v1alpha1.FileName, Content: src})
	if TypeOf(p) == v1alpha1.ProviderInfrastructure {
		flavours := scaffold.FlavoursFor(p.Name)
		if len(flavours) == 0 && !there {
			e.Notes = append(e.Notes,
				fmt.Sprintf("fleetctl has charts only for clusters of %s: `fleetctl chart add NAME --from TEMPLATE.yaml` makes a chart for %s from a "+
					"template of clusterctl.", strings.Join(scaffold.Providers(), ", "), p.Name))
		}
		if err := r.bringCharts(e, flavours); err != nil {
			return nil, err
		}
	}
	e.Notes = append(e.Notes, "`fleetctl init` installs it on the management cluster "+m.Name+".")
	return e, nil
}

// bringCharts adds to the edit the charts of flavours of which the repo has none.
func (r *Repo) bringCharts(e *Edit, flavours []string) error {
	brought := map[string][]manifest.File{}
	for _, flavour := range flavours {
		files, err := scaffold.ChartFiles(flavour)
		if err != nil {
			return err
		}
		if missing := scaffold.Missing(files, r.exists); len(missing) > 0 {
			e.Changes.Write(missing...)
			brought[flavour] = files
		}
	}
	return r.lockCharts(e, brought)
}

// appendProvider adds a provider without a version to the list of a management cluster.
func (r *Repo) appendProvider(src []byte, m *v1alpha1.ManagementCluster, p v1alpha1.Provider) ([]byte, error) {
	index := slices.IndexFunc(r.Fleet.Spec.ManagementClusters, func(o v1alpha1.ManagementCluster) bool { return o.Name == m.Name })
	fields := map[string]string{"name": p.Name}
	if TypeOf(p) != v1alpha1.ProviderInfrastructure {
		fields["type"] = string(p.Type)
	}
	item := &yaml.Node{}
	if err := item.Encode(fields); err != nil {
		return nil, err
	}
	return yamledit.Append(src, 0, yamledit.Path{"spec", "managementClusters", index, "providers"}, item)
}
