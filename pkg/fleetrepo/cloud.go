package fleetrepo

import (
	"fmt"
	"path"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// A management cluster has a home: the cloud whose folder has the management cluster's own configuration. Clusters in other clouds are in
// the folders of those clouds. An environment gets a folder there with its first cluster in that cloud.

// layoutFor returns the layout for a new cluster of a flavour: that of the cloud whose provider the flavour needs. If
// an older fleetctl has put clusters of this flavour into the home's folder of the environment, the new cluster joins
// them there. Otherwise two HelmCharts with the same name would overwrite each other.
func (r *Repo) layoutFor(m *v1alpha1.ManagementCluster, environment, flavour string) layout.Layout {
	return r.layoutOf(m, environment, flavour, r.cloudOf(m, flavour))
}

// layoutOf is layoutFor for a known provider of the flavour.
func (r *Repo) layoutOf(m *v1alpha1.ManagementCluster, environment, flavour, provider string) layout.Layout {
	if home := m.Layout(); r.exists(home.EnvironmentChart(environment, flavour)) {
		return home
	}
	return r.Fleet.LayoutFor(m, provider)
}

// cloudOf returns the infrastructure provider of a management cluster that makes the clusters of a flavour; "" if that
// is not known.
func (r *Repo) cloudOf(m *v1alpha1.ManagementCluster, flavour string) string {
	return r.makerOf(flavour).in(m)
}

// LayoutOf returns the layout of a cluster's management cluster for the cloud whose folder has the cluster.
func (r *Repo) LayoutOf(c Cluster) layout.Layout {
	m, err := r.managementCluster(c.ManagementCluster)
	if err != nil {
		return layout.Layout{}
	}
	return v1alpha1.LayoutOf(r.Fleet.Layouts(m), c.File)
}

// AppliedBy returns the names of the Flux Kustomizations that apply an environment on a management cluster. There is
// one for each cloud in which the management cluster has the environment; its home comes first.
func (r *Repo) AppliedBy(m *v1alpha1.ManagementCluster, environment string) []string {
	var names []string
	for _, l := range r.Fleet.Layouts(m) {
		if l.IsHome() || r.exists(l.ClustersFile(environment)) {
			names = append(names, l.ClustersName(environment))
		}
	}
	return names
}

// uses tells whether a management cluster has a folder for an environment in the cloud of a layout. It always has one
// in its home.
func (r *Repo) uses(l layout.Layout, environment string) bool {
	return l.IsHome() || r.exists(l.Environment(environment))
}

// layoutsIn are the layouts of a management cluster for the clouds with a folder for an environment, its home first.
func (r *Repo) layoutsIn(m *v1alpha1.ManagementCluster, environment string) []layout.Layout {
	return slices.DeleteFunc(r.Fleet.Layouts(m), func(l layout.Layout) bool { return !r.uses(l, environment) })
}

// everyLayoutIn are the layouts of all management clusters for the clouds with a folder for an environment.
func (r *Repo) everyLayoutIn(environment string) []layout.Layout {
	return slices.DeleteFunc(r.layouts(), func(l layout.Layout) bool { return !r.uses(l, environment) })
}

// openCloud copies the shared files of an environment to the folder of a cloud, together with the first cluster there.
// Without these files, the cluster would lack the features and tenants of its environment.
func (r *Repo) openCloud(e *Edit, m *v1alpha1.ManagementCluster, at layout.Layout, environment string) error {
	if at.IsHome() || r.exists(at.Cluster(environment, layout.CommonDir)) {
		return nil
	}
	move := &mover{repo: r, into: r, from: m.Layout(), at: at, to: m, environment: environment}
	from := path.Join(move.from.Environment(environment), layout.CommonDir)
	files, err := move.read(from, path.Join(at.Environment(environment), layout.CommonDir))
	if err != nil {
		return err
	}
	if len(files) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("It is the first cluster of %s in %s: what %s has for all its clusters comes along from %s.",
			environment, at.Cloud, environment, from))
	}
	e.Changes.Write(files...)
	if err := move.tenants(e); err != nil {
		return err
	}
	return r.notifyAlso(e, m, at, environment)
}

// clustersFile returns the Flux Kustomization for an environment's folder in a cloud that is not the home. It is made
// from the Kustomization for the home's folder, with all changes that somebody has made there. It is nil if nothing
// applies the home's folder.
func (r *Repo) clustersFile(m *v1alpha1.ManagementCluster, at layout.Layout, environment string) (*manifest.File, error) {
	from := m.Layout().ClustersFile(environment)
	if at.IsHome() || !r.exists(from) {
		return nil, nil
	}
	src, err := r.read(from)
	if err != nil {
		return nil, fmt.Errorf("read what applies environment %s: %w", environment, err)
	}
	for _, field := range []struct {
		path  yamledit.Path
		value string
	}{
		{yamledit.Path{"metadata", "name"}, at.ClustersName(environment)},
		{yamledit.Path{"spec", "path"}, "./" + at.Environment(environment)},
	} {
		if src, err = yamledit.Set(src, 0, field.path, field.value); err != nil {
			return nil, diag.Wrap("copy "+from, err, "write "+at.ClustersFile(environment)+" in an editor, like "+from)
		}
	}
	return &manifest.File{Path: at.ClustersFile(environment), Content: src}, nil
}

// presentWith tells whether the repo has a file, or a change of an edit writes it.
func (r *Repo) presentWith(cs *manifest.ChangeSet) func(name string) bool {
	written := map[string]bool{}
	for _, f := range cs.Files() {
		written[f.Path] = true
	}
	return func(name string) bool { return written[name] || r.exists(name) }
}

// closeCloud removes the folders of a cloud in which a management cluster has no clusters any more, with the
// Kustomizations that apply them. gone are the layouts for the cloud.
func (r *Repo) closeCloud(e *Edit, gone layout.Layout) error {
	for _, environment := range r.EnvironmentNames() {
		file := gone.ClustersFile(environment)
		if r.exists(file) {
			e.Changes.Delete(file)
		}
		if err := r.listed(&e.Changes, path.Dir(file), path.Base(file), false); err != nil {
			return err
		}
	}
	if err := r.deleteFolder(&e.Changes, gone.Owned()); err != nil {
		return err
	}
	return r.dropTenants(e, gone.Cloud)
}

// dropTenants removes the tenants of a cloud in which no management cluster has a folder any more: nothing would apply them.
func (r *Repo) dropTenants(e *Edit, cloud string) error {
	if slices.ContainsFunc(r.layouts(), func(l layout.Layout) bool { return l.Cloud == cloud }) {
		return nil
	}
	return r.deleteFolder(&e.Changes, layout.TenantsDir(cloud))
}

// notifyAlso rewrites notifications about an environment that do not yet include its folder in a cloud. It leaves
// notifications alone that somebody has changed.
func (r *Repo) notifyAlso(e *Edit, m *v1alpha1.ManagementCluster, at layout.Layout, environment string) error {
	for i := range r.Fleet.Spec.Notifications {
		n := r.Fleet.Spec.Notifications[i]
		if !n.IsOn(m.Name) || !slices.Contains(n.Environments, environment) || !r.exists(scaffold.NotificationFile(m.Layout(), n.Name)) {
			continue
		}
		before, err := scaffold.Notification(r.notificationOptions(m, n, nil))
		if err != nil {
			return err
		}
		there, err := r.read(before.Path)
		if err != nil {
			return err
		}
		if !sameText(there, before.Content) {
			e.LeftAlone = append(e.LeftAlone, fmt.Sprintf(
				"%s is left alone: somebody has changed it. Add the Kustomization %s to its event sources.", before.Path, at.ClustersName(environment)))
			continue
		}
		after, err := scaffold.Notification(r.notificationOptions(m, n, map[string]layout.Layout{environment: at}))
		if err != nil {
			return err
		}
		e.Changes.Write(after)
	}
	return nil
}
