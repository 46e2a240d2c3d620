package fleetrepo

import (
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Environment is a group of clusters.
type Environment struct {
	Name     string `json:"name"`
	Clusters int    `json:"clusters"`
	// Declared: fleet.yaml lists it. One that is only a folder is not applied by a new management cluster.
	Declared bool `json:"declared"`
}

// EnvironmentNames are those that fleet.yaml lists, in its order.
func (r *Repo) EnvironmentNames() []string {
	names := make([]string, 0, len(r.Fleet.Spec.Environments))
	for _, e := range r.Fleet.Spec.Environments {
		names = append(names, e.Name)
	}
	return names
}

// Environments lists those of fleet.yaml in its order, then folders that it does not list, with how many clusters each has.
func (r *Repo) Environments() ([]Environment, error) {
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	all := make([]Environment, 0, len(r.Fleet.Spec.Environments))
	for _, name := range r.EnvironmentNames() {
		all = append(all, Environment{Name: name, Declared: true})
	}
	for _, p := range places {
		i := slices.IndexFunc(all, func(e Environment) bool { return e.Name == p.environment })
		if i < 0 {
			i, all = len(all), append(all, Environment{Name: p.environment})
		}
		if r.exists(p.file) {
			all[i].Clusters++
		}
	}
	return all, nil
}

// AddEnvironment lists an environment in fleet.yaml and makes what every management cluster needs to apply its clusters. Files that
// are there stay as they are.
func (r *Repo) AddEnvironment(name string) (*Edit, error) {
	e := &Edit{Summary: "Add environment " + name}
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		files, err := scaffold.EnvironmentFiles(layoutOf(m), scaffold.Environment{Name: name, Source: r.Fleet.ChannelOf(name).Source()})
		if err != nil {
			return nil, err
		}
		e.Changes.Write(scaffold.Missing(files, r.exists)...)
		if err := r.listed(&e.Changes, m.Dir(), path.Base(files[0].Path), true); err != nil {
			return nil, err
		}
	}
	if slices.Contains(r.EnvironmentNames(), name) {
		return e, nil
	}
	src, err := r.read(v1alpha1.FileName)
	if err != nil {
		return nil, err
	}
	item := &yaml.Node{}
	if err := item.Encode(v1alpha1.Environment{Name: name}); err != nil {
		return nil, err
	}
	changed, err := yamledit.Append(src, 0, yamledit.Path{"spec", "environments"}, item)
	if err != nil {
		return nil, diag.Wrap("change "+v1alpha1.FileName, err, "add the environment there in an editor")
	}
	if _, err := v1alpha1.Decode(v1alpha1.FileName, changed); err != nil {
		return nil, err
	}
	e.Changes.Write(manifest.File{Path: v1alpha1.FileName, Content: changed})
	return e, nil
}
