package fleetrepo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// ManagementCluster is a management cluster that fleet.yaml declares.
type ManagementCluster struct {
	Name   string `json:"name"`
	Host   string `json:"host"`
	Parent string `json:"parent,omitempty"`
	// Folder of its generation, with its own configuration and its clusters.
	Folder string `json:"folder"`
	// CloudFolders are the folders of its clusters in other clouds.
	CloudFolders []string `json:"cloudFolders,omitempty"`
	// Providers of infrastructure, with their versions if fleet.yaml names them.
	Providers []string `json:"providers"`
	// Clusters that it makes.
	Clusters int `json:"clusters"`
}

// ManagementClusters lists the management clusters of fleet.yaml, in its order.
func (r *Repo) ManagementClusters() ([]ManagementCluster, error) {
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	all := make([]ManagementCluster, 0, len(r.Fleet.Spec.ManagementClusters))
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		one := ManagementCluster{Name: m.Name, Host: string(m.Host.Type), Parent: m.Parent, Folder: m.Layout().Owned(), Providers: []string{}}
		if m.Path != "" {
			one.Folder = m.Dir()
		}
		for _, l := range r.Fleet.Layouts(m) {
			if !l.IsHome() && r.exists(l.Owned()) {
				one.CloudFolders = append(one.CloudFolders, l.Owned())
			}
		}
		for _, p := range m.Providers {
			if TypeOf(p) == v1alpha1.ProviderInfrastructure {
				one.Providers = append(one.Providers, strings.TrimSuffix(p.Name+" "+p.Version, " "))
			}
		}
		for _, p := range places {
			if p.mgmt == m && r.exists(p.file) {
				one.Clusters++
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// ManagementClusterNames are the names of the management clusters that fleet.yaml declares.
func (r *Repo) ManagementClusterNames() []string { return r.Fleet.ManagementClusterNames() }

// ManagementClustersOf are the management clusters in whose folders the changed files are, in the order of fleet.yaml.
func (r *Repo) ManagementClustersOf(files []manifest.Change) []string {
	var names []string
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		if slices.ContainsFunc(r.Fleet.Layouts(m), func(l layout.Layout) bool {
			return slices.ContainsFunc(files, func(c manifest.Change) bool {
				return strings.HasPrefix(c.Path, l.Owned()+"/") || strings.HasPrefix(c.Path, l.Management()+"/")
			})
		}) {
			names = append(names, m.Name)
		}
	}
	return names
}

// AddManagementCluster declares a management cluster in fleet.yaml, and adds the charts of its flavours. It is no error if fleet.yaml
// already has the same one. Without a generation, it gets the first free one below its cloud. Errors: a bad or taken name, and an invalid
// fleet.yaml.
func (r *Repo) AddManagementCluster(m v1alpha1.ManagementCluster) (*Edit, error) {
	e := &Edit{Summary: "Add management cluster " + m.Name}
	if i := slices.Index(r.ManagementClusterNames(), m.Name); i >= 0 {
		if !declaresAs(r.Fleet.Spec.ManagementClusters[i], m) {
			return nil, diag.Usage("choose another name, or change it in "+v1alpha1.FileName,
				"there is a management cluster %s already, and it is another one", m.Name)
		}
		e.AsWanted = "management cluster " + m.Name + " is there"
		return e, nil
	}
	if m.Generation == "" {
		m.Generation = r.freeGeneration(m)
	}
	if err := scaffold.CheckLayout(m.Layout()); err != nil {
		return nil, err
	}
	if other := r.otherCloudOf(m.Layout().Owned()); other != "" {
		return nil, diag.Usage("choose another --generation or --cloud", "%s has the clusters of management cluster %s in that cloud",
			m.Layout().Owned(), other)
	}
	after, err := r.editFleet(e, func(f *fleetFile) error { return f.append("managementClusters", v1alpha1.Node(m)) })
	if err != nil {
		return nil, r.refusedManagementCluster(err)
	}
	for _, p := range m.Providers {
		if TypeOf(p) == v1alpha1.ProviderInfrastructure {
			if err := after.bringCharts(e, scaffold.FlavoursFor(p.Name)); err != nil {
				return nil, err
			}
		}
	}
	e.Notes = append(e.Notes, fmt.Sprintf("Its folder is %s; `fleetctl init --management %s` makes it.", m.Layout().Owned(), m.Name))
	if names := r.ManagementClusterNames(); m.Parent != "" && !slices.Contains(names, m.Parent) {
		e.Notes = append(e.Notes, fmt.Sprintf("This fleet has no management cluster %s, only %s. So %s has to be one of another fleet, which "+
			"this machine knows.", m.Parent, strings.Join(names, ", "), m.Parent))
	}
	return e, nil
}

// declaresAs tells whether an existing declaration is what m asks for. Fields that m leaves empty do not matter.
func declaresAs(there, m v1alpha1.ManagementCluster) bool {
	at := there.Layout()
	for _, asked := range []struct{ want, have string }{
		{m.Cloud, at.Cloud},
		{m.Generation, at.Generation},
		{m.Parent, there.Parent},
		{m.KubernetesVersion, there.KubernetesVersion},
	} {
		if asked.want != "" && asked.want != asked.have {
			return false
		}
	}
	if !hasHost(there.Host, m.Host) {
		return false
	}
	return !slices.ContainsFunc(m.Providers, func(p v1alpha1.Provider) bool {
		return !slices.ContainsFunc(there.Providers, func(have v1alpha1.Provider) bool {
			return have.Name == p.Name && TypeOf(have) == TypeOf(p) && (p.Version == "" || p.Version == have.Version)
		})
	})
}

// hasHost tells whether an existing host is what wanted asks for. Fields that wanted leaves empty do not matter.
func hasHost(there, wanted v1alpha1.Host) bool {
	if wanted.Type != "" && wanted.Type != there.Type {
		return false
	}
	return wanted.Existing == nil || there.Existing != nil && wanted.Existing.Context == there.Existing.Context
}

// freeGeneration returns the first of v1, v2 and so on whose folder below the cloud of m belongs to no other management
// cluster; "" for the default.
func (r *Repo) freeGeneration(m v1alpha1.ManagementCluster) string {
	for n := 1; ; n++ {
		if n > 1 {
			m.Generation = fmt.Sprintf("v%d", n)
		}
		taken := slices.ContainsFunc(r.Fleet.Spec.ManagementClusters, func(o v1alpha1.ManagementCluster) bool { return o.Layout() == m.Layout() })
		if !taken && r.otherCloudOf(m.Layout().Owned()) == "" && !r.exists(m.Layout().Owned()) {
			return m.Generation
		}
	}
}

// otherCloudOf returns the management cluster that keeps clusters of another cloud than its home in a folder; "" if
// there is none.
func (r *Repo) otherCloudOf(dir string) string {
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		for _, l := range r.Fleet.Layouts(m) {
			if !l.IsHome() && l.Owned() == dir && r.exists(dir) {
				return m.Name
			}
		}
	}
	return ""
}

// RemoveManagementCluster removes a management cluster without workload clusters from fleet.yaml, with its folder and with everything that
// only this management cluster needed: the tenants of its clouds, and the charts and the entries of fleet.lock of its providers. It does
// not delete the cluster itself: teardown does. Errors: an unknown management cluster, and one that has workload clusters or other
// management clusters.
func (r *Repo) RemoveManagementCluster(name string) (*Edit, error) {
	all, err := r.ManagementClusters()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(m ManagementCluster) bool { return m.Name == name })
	if i < 0 {
		return nil, diag.Unknown("management cluster", name, r.ManagementClusterNames(), "`fleetctl management add "+name+"` makes one")
	}
	if all[i].Clusters > 0 {
		return nil, diag.Errorf(
			"delete them first, `fleetctl cluster remove`, or hand them over to another one, `fleetctl cluster transfer NAME --to MANAGEMENT`",
			"management cluster %s makes clusters: %d in %s", name, all[i].Clusters, all[i].Folder)
	}
	for _, m := range all {
		if m.Parent == name {
			return nil, diag.Errorf("remove this child first: `fleetctl management remove "+m.Name+"`",
				"management cluster %s makes the management cluster %s", name, m.Name)
		}
	}
	named := func(n *v1alpha1.Notification) []string { return n.ManagementClusters }
	if err := r.checkNotNotified("managementClusters", name, named); err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Remove management cluster " + name}
	after, err := r.editFleet(e, func(f *fleetFile) (err error) {
		f.src, err = yamledit.RemoveItem(f.src, 0, yamledit.Path{"spec", "managementClusters", i})
		return diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "remove it in an editor")
	})
	if err != nil {
		return nil, err
	}
	m := &r.Fleet.Spec.ManagementClusters[i]
	for _, l := range r.Fleet.Layouts(m) {
		if err := r.deleteFolder(&e.Changes, l.Owned()); err != nil {
			return nil, err
		}
		if err := after.dropTenants(e, l.Cloud); err != nil {
			return nil, err
		}
	}
	if err := after.dropProviders(e, m.Providers, installs(*m)); err != nil {
		return nil, err
	}
	e.Notes = append(e.Notes, "An existing cluster stays: before this change, run `fleetctl teardown --management "+name+"`.")
	return e, nil
}
