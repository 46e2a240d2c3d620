package fleetrepo

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// RemoveProvider removes a provider of a management cluster ("" stands for the only one) from fleet.yaml and fleet.lock. It also removes
// the charts that only this provider brought, if no cluster uses them and nobody has changed them. A p without a type is the infrastructure
// provider of its name or, if there is none, the only provider of its name. Errors: an unknown provider, one in another version than p
// names, and one that clusters of that management cluster need.
func (r *Repo) RemoveProvider(cluster string, p v1alpha1.Provider) (*Edit, error) {
	m, err := r.managementCluster(cluster)
	if err != nil {
		if cluster == "" && len(r.Fleet.Spec.ManagementClusters) > 0 { // to ask for the one of a provider that none has would mislead
			if unknown := unknownProvider(p, r.Fleet.Spec.ManagementClusters...); unknown != nil {
				return nil, unknown
			}
		}
		return nil, err
	}
	if err := unknownProvider(p, *m); err != nil {
		return nil, err
	}
	p.Type = typeAmong(p, *m)
	index := indexOf(m, p)
	if declared := m.Providers[index].Version; p.Version != "" && p.Version != declared {
		return nil, diag.Usage("leave out the version: `fleetctl provider remove "+p.Name+"`",
			"management cluster %s has provider %s in %s, not in %s", m.Name, p.Name, cmp.Or(declared, "no version yet"), p.Version)
	}
	if err := r.checkProviderUnused(m, p); err != nil {
		return nil, err
	}
	fleet, err := r.readFleet()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(r.Fleet.Spec.ManagementClusters, func(o v1alpha1.ManagementCluster) bool { return o.Name == m.Name })
	if fleet.src, err = yamledit.RemoveItem(fleet.src, 0, yamledit.Path{"spec", "managementClusters", at, "providers", index}); err != nil {
		return nil, diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "remove the provider in an editor")
	}
	if err := r.keepHome(fleet, m, index); err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Remove provider %s from %s", p.Name, m.Name)}
	after, err := fleet.finish(&e.Changes)
	if err != nil {
		return nil, err
	}
	if gone := r.Fleet.LayoutFor(m, p.Name); TypeOf(p) == v1alpha1.ProviderInfrastructure && !gone.IsHome() {
		if err := after.closeCloud(e, gone); err != nil {
			return nil, err
		}
		mgmt, err := after.managementCluster(m.Name)
		if err != nil {
			return nil, err
		}
		if err := after.renotify(e, mgmt, noticed{before: r}); err != nil {
			return nil, err
		}
	}
	if err := after.dropProviders(e, m.Providers[index:index+1], []v1alpha1.LockedComponent{lockedProvider(m.Providers[index])}); err != nil {
		return nil, err
	}
	e.Notes = append(e.Notes,
		fmt.Sprintf("If it is installed on the management cluster %s, it stays there: `clusterctl delete --%s %s` removes it.", m.Name,
			clusterctlFlag(TypeOf(p)), p.Name))
	return e, nil
}

// clusterctlFlag returns the flag of clusterctl that names a provider of a type.
func clusterctlFlag(t v1alpha1.ProviderType) string { return strings.ToLower(string(t)) }

// checkProviderUnused returns an error if existing clusters need the provider: those of its flavours, those of a team's own charts with its
// kinds, and those in the folder of its cloud.
func (r *Repo) checkProviderUnused(m *v1alpha1.ManagementCluster, p v1alpha1.Provider) error {
	clusters, _, err := r.Clusters() // validate reports a file that cannot be read
	if err != nil {
		return err
	}
	cloud, makes := r.Fleet.LayoutFor(m, p.Name), map[string]bool{}
	var needs []string
	for _, c := range clusters {
		if c.ManagementCluster != m.Name {
			continue
		}
		if _, known := makes[c.Flavour]; !known {
			makes[c.Flavour] = TypeOf(p) == v1alpha1.ProviderInfrastructure && r.cloudOf(m, c.Flavour) == p.Name
		}
		if makes[c.Flavour] || !cloud.IsHome() && strings.HasPrefix(c.File, cloud.Clusters()+"/") {
			needs = append(needs, c.Environment+"/"+c.Name)
		}
	}
	if len(needs) == 0 {
		return nil
	}
	return diag.Errorf("delete them first: `fleetctl cluster remove "+needs[0]+"`", "provider %s makes the machines of %s", p.Name,
		strings.Join(needs, ", "))
}

// keepHome writes the name of a management cluster's home to fleet.yaml if the provider that gave the home its name is
// removed. Otherwise its folder would be that of another cloud. keepHome refuses the removal as long as other clouds
// have folders, which are named after their providers.
func (r *Repo) keepHome(f *fleetFile, m *v1alpha1.ManagementCluster, index int) error {
	left := *m
	left.Providers = slices.Delete(slices.Clone(m.Providers), index, index+1)
	if left.HomeProvider() == m.HomeProvider() {
		return nil
	}
	for _, l := range r.Fleet.Layouts(m) {
		if !l.IsHome() && r.exists(l.Owned()) {
			return diag.Errorf("leave it in "+v1alpha1.FileName+", or remove the clusters in "+l.Owned()+" and their provider first",
				"the folder %s of management cluster %s is that of provider %s, and %s is beside it", m.Layout().Owned(), m.Name,
				m.Providers[index].Name, l.Owned())
		}
	}
	if left.Layout() == m.Layout() || !r.exists(m.Layout().Owned()) {
		return nil
	}
	at := slices.IndexFunc(r.Fleet.Spec.ManagementClusters, func(o v1alpha1.ManagementCluster) bool { return o.Name == m.Name })
	return f.take(yamledit.Set(f.src, 0, yamledit.Path{"spec", "managementClusters", at, "cloud"}, m.Layout().Cloud))
}

// dropProviders removes from charts/ what only the removed providers needed, and from fleet.lock these charts and what was installed for
// them: installed are the components that went with them.
func (r *Repo) dropProviders(e *Edit, gone []v1alpha1.Provider, installed []v1alpha1.LockedComponent) error {
	var flavours, unused []string
	for _, p := range gone {
		if TypeOf(p) == v1alpha1.ProviderInfrastructure {
			flavours = append(flavours, scaffold.FlavoursFor(p.Name)...)
		}
	}
	for _, flavour := range sortedSet(flavours) {
		idle, err := r.idleChart(flavour)
		if err != nil {
			return err
		}
		if !idle {
			continue
		}
		unused = append(unused, flavour)
		if err := r.deleteFolder(&e.Changes, path.Join(layout.ChartsDir, flavour)); err != nil {
			return err
		}
	}
	if !r.exists(v1alpha1.LockFileName) {
		return nil
	}
	lock, err := r.readLock()
	if err != nil {
		return err
	}
	lock.Charts = slices.DeleteFunc(lock.Charts, func(c v1alpha1.LockedChart) bool { return slices.Contains(unused, c.Name) })
	r.unlock(e, lock, installed)
	return r.writeLock(e, lock)
}

// idleChart tells whether a chart is unchanged since fleetctl wrote it, no provider in fleet.yaml brings it, and no
// cluster uses it.
func (r *Repo) idleChart(flavour string) (bool, error) {
	for i := range r.Fleet.Spec.ManagementClusters {
		for _, p := range r.Fleet.Spec.ManagementClusters[i].Providers {
			if TypeOf(p) == v1alpha1.ProviderInfrastructure && slices.Contains(scaffold.FlavoursFor(p.Name), flavour) {
				return false, nil
			}
		}
	}
	clusters, problems, err := r.Clusters()
	if err != nil || problems.Err() != nil { // a cluster that cannot be read may use it
		return false, err
	}
	if slices.ContainsFunc(clusters, func(c Cluster) bool { return c.Flavour == flavour }) {
		return false, nil
	}
	for _, l := range r.layouts() {
		for _, env := range r.EnvironmentNames() {
			if r.exists(l.EnvironmentChart(env, flavour)) {
				return false, nil
			}
		}
	}
	charts, err := r.Charts()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(charts, func(c Chart) bool { return c.Name == flavour })
	return i >= 0 && charts[i].State != ChartOwn && !charts[i].Changed, nil
}

// typeAmong returns the type of a provider. If p has none, it is infrastructure or, if no infrastructure provider has the name, the only
// type of which these management clusters have a provider of the name.
func typeAmong(p v1alpha1.Provider, among ...v1alpha1.ManagementCluster) v1alpha1.ProviderType {
	if types := typesNamed(p.Name, among...); p.Type == "" && len(types) == 1 {
		return types[0]
	}
	return TypeOf(p)
}

// typesNamed are the types of which these management clusters have a provider of this name.
func typesNamed(name string, among ...v1alpha1.ManagementCluster) []v1alpha1.ProviderType {
	var types []v1alpha1.ProviderType
	for _, m := range among {
		for _, o := range m.Providers {
			if o.Name == name && !slices.Contains(types, TypeOf(o)) {
				types = append(types, TypeOf(o))
			}
		}
	}
	return types
}

// unknownProvider returns the error for a provider that fleet.yaml has for none of these management clusters; nil if one has it.
func unknownProvider(p v1alpha1.Provider, among ...v1alpha1.ManagementCluster) error {
	anyType := p.Type == ""
	p.Type = typeAmong(p, among...)
	var names []string
	for i := range among {
		if indexOf(&among[i], p) >= 0 {
			return nil
		}
		for _, o := range among[i].Providers {
			if anyType || TypeOf(o) == p.Type {
				names = append(names, o.Name)
			}
		}
	}
	if types := typesNamed(p.Name, among...); len(types) > 0 {
		flags := make([]string, 0, len(types))
		for _, t := range types {
			flags = append(flags, "--type "+string(t))
		}
		return diag.Usage("give its type: "+strings.Join(flags, " or "), "there is no %s provider %q", p.Type, p.Name)
	}
	orElse := "no management cluster of the fleet has one"
	if len(among) == 1 {
		orElse = "management cluster " + among[0].Name + " has none"
	}
	what := string(p.Type) + " provider"
	if anyType {
		what = "provider"
	}
	return diag.Unknown(what, p.Name, sortedSet(names), orElse)
}
