package fleetrepo

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// RemoveEnvironment removes an environment without clusters and tenants from fleet.yaml, with the files that apply it.
// Errors: an unknown environment, and an environment that has clusters or tenants or that a notification is about.
func (r *Repo) RemoveEnvironment(name string) (*Edit, error) {
	all, err := r.Environments()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(e Environment) bool { return e.Name == name })
	if i < 0 {
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		return nil, unknownEnvironment(name, names)
	}
	if err := r.checkEmpty(name); err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Remove environment " + name}
	if all[i].Declared {
		if err := r.dropEnvironment(e, name); err != nil {
			return nil, err
		}
	}
	for _, l := range r.layouts() {
		file := l.ClustersFile(name)
		if r.exists(file) {
			e.Changes.Delete(file)
		}
		if err := r.listed(&e.Changes, path.Dir(file), path.Base(file), false); err != nil {
			return nil, err
		}
		for _, dir := range []string{l.Environment(name), path.Dir(l.Tenant(name, "x"))} {
			if err := r.deleteFolder(&e.Changes, dir); err != nil {
				return nil, err
			}
		}
	}
	if channel := r.Fleet.ChannelOf(name); channel.Name != v1alpha1.MainChannel && len(r.Fleet.EnvironmentsOf(channel.Name)) == 1 {
		e.Notes = append(e.Notes, fmt.Sprintf("No environment follows channel %s any more: `fleetctl channel remove %s` removes it.",
			channel.Name, channel.Name))
	}
	return e, nil
}

// checkEmpty returns an error if an environment has clusters or tenants, which would be deleted with it, or if a notification is about it.
func (r *Repo) checkEmpty(name string) error {
	if err := r.checkNotNotified("environments", name, func(n *v1alpha1.Notification) []string { return n.Environments }); err != nil {
		return err
	}
	places, err := r.places("")
	if err != nil {
		return err
	}
	var clusters []string
	for _, p := range places {
		if p.environment == name {
			clusters = append(clusters, p.target().Cluster)
		}
	}
	if len(clusters) > 0 {
		return diag.Errorf(fmt.Sprintf("delete them first: `fleetctl cluster remove %s/%s`", name, clusters[0]),
			"environment %s has clusters: %s", name, strings.Join(sortedSet(clusters), ", "))
	}
	tenants, err := r.Tenants()
	if err != nil {
		return err
	}
	var there []string
	for _, t := range tenants {
		if slices.ContainsFunc(t.Environments, func(e TenantEnvironment) bool { return e.Name == name }) {
			there = append(there, t.Name)
		}
	}
	if len(there) == 0 {
		return nil
	}
	what, which := "the tenant", "it"
	if len(there) > 1 {
		what, which = "tenants:", "each"
	}
	return diag.Errorf(fmt.Sprintf("remove %s first: `fleetctl tenant remove %s --environment %s`", which, there[0], name),
		"environment %s has %s %s", name, what, strings.Join(there, ", "))
}

// dropEnvironment removes an environment from the list in fleet.yaml, and the list with its last environment.
func (r *Repo) dropEnvironment(e *Edit, name string) error {
	fleet, err := r.readFleet()
	if err != nil {
		return err
	}
	at := yamledit.Path{"spec", "environments", slices.Index(r.EnvironmentNames(), name)}
	if fleet.src, err = yamledit.RemoveItem(fleet.src, 0, at); err != nil {
		return diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "remove the environment in an editor")
	}
	_, err = fleet.finish(&e.Changes)
	return err
}

// RemoveFeature removes a feature that no cluster has from the repo. Errors: an unknown feature, and a feature that a
// cluster has.
func (r *Repo) RemoveFeature(name string) (*Edit, error) {
	all, err := r.Features()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(f Feature) bool { return f.Name == name })
	if i < 0 {
		return nil, diag.Unknown("feature", name, r.FeatureNames(), "`fleetctl feature add "+name+"` makes one")
	}
	if has := slices.Concat(all[i].Environments, all[i].Clusters, all[i].ManagementClusters); len(has) > 0 {
		return nil, diag.Errorf("disable it first: `fleetctl feature disable "+name+"`", "feature %s is enabled for %s", name,
			strings.Join(has, ", "))
	}
	e := &Edit{Summary: "Remove feature " + name}
	values, err := r.valuesOfFeature(name)
	if err != nil {
		return nil, err
	}
	files := slices.Sorted(maps.Keys(values))
	for _, file := range files { // otherwise the next feature of that name would get these values
		e.Changes.Delete(file)
		if err := r.enlist(&e.Changes, values[file], file, false); err != nil {
			return nil, err
		}
	}
	if len(files) > 0 {
		e.Notes = append(e.Notes, "This also removes the values that environments and clusters had for it: "+strings.Join(files, ", ")+".")
	}
	if err := r.unlockFeature(e, name); err != nil {
		return nil, err
	}
	return e, r.deleteFolder(&e.Changes, path.Join(layout.FeaturesDir, name))
}

// RemoveNetwork removes a network that no cluster has from the repo. Charts that name it get back the network that
// fleetctl wrote. Errors: an unknown network, and a network that clusters have.
func (r *Repo) RemoveNetwork(name string) (*Edit, error) {
	all, err := r.Networks()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(n Network) bool { return n.Name == name })
	if i < 0 {
		return nil, diag.Unknown("network", name, r.NetworkNames(), "`fleetctl cni add "+name+"` makes one")
	}
	if has := all[i].Clusters; len(has) > 0 {
		return nil, diag.Errorf(fmt.Sprintf("give them another one first, `fleetctl cluster flux %s --cni NAME`, or remove them", has[0]),
			"network %s is used by %s", name, strings.Join(has, ", "))
	}
	e := &Edit{Summary: "Remove network " + name}
	for _, flavour := range all[i].Flavours {
		if err := r.forgetNetwork(e, flavour, name); err != nil {
			return nil, err
		}
	}
	return e, r.deleteFolder(&e.Changes, layout.CNIDir(name))
}

// forgetNetwork restores the annotation of a chart that names a network to the one in fleetctl's chart.
func (r *Repo) forgetNetwork(e *Edit, flavour, name string) error {
	at := yamledit.Path{"annotations", CNIAnnotation}
	own := ""
	if files, err := scaffold.ChartFiles(flavour); err == nil {
		for _, f := range files {
			if path.Base(f.Path) != "Chart.yaml" {
				continue
			}
			if documents, err := yamledit.Parse(f.Content); err == nil && len(documents) > 0 {
				own = text(yamledit.Find(documents[0], at...))
			}
		}
	}
	file := path.Join(layout.ChartsDir, flavour, "Chart.yaml")
	src, err := r.read(file)
	if err != nil {
		return err
	}
	if own == "" || own == name {
		src, err = yamledit.Remove(src, 0, at)
	} else {
		src, err = yamledit.Set(src, 0, at, own)
	}
	if err != nil {
		return diag.Wrap("change "+yamledit.At(file, err), err, fmt.Sprintf("remove the annotation %s in an editor", CNIAnnotation))
	}
	e.Changes.Write(manifest.File{Path: file, Content: src})
	e.Notes = append(e.Notes, fmt.Sprintf("New clusters of flavour %s get no network by default any more.", flavour))
	return nil
}
