package fleetrepo

import (
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// manages tells whether a workload cluster is a management cluster itself: one that this management cluster makes, or
// the cluster that this one runs on.
func (r *Repo) manages(mgmt *v1alpha1.ManagementCluster, name string) bool {
	return slices.ContainsFunc(r.Fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool {
		return m.Name == name && m.Parent != "" && (m.Parent == mgmt.Name || m.Name == mgmt.Name)
	})
}

// ownOf tells whether a transfer moves the cluster that a management cluster runs on from its parent to itself, or
// back. No other management cluster may have this cluster.
func (r *Repo) ownOf(c *declared, to *v1alpha1.ManagementCluster) bool {
	own, err := r.managementCluster(c.Name)
	if err != nil {
		return false
	}
	return to.Name == own.Name && c.mgmt.Name == own.Parent || to.Name == own.Parent && c.mgmt.Name == own.Name
}

// StandsAlone tells whether a management cluster manages the cluster that it runs on. Then its parent has handed that
// cluster over, and is not asked any more.
func (r *Repo) StandsAlone(name string) (bool, error) {
	m, err := r.managementCluster(name)
	if err != nil || m.Parent == "" {
		return false, err
	}
	places, err := r.places(name)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(places, func(p place) bool { return p.mgmt == m && r.exists(p.file) }), nil
}

// Master is a management cluster with a parent, and the clusters that it has to take over from the parent to stand alone.
type Master struct {
	Name, Parent string
	// ParentHost is the declared host of the parent.
	ParentHost v1alpha1.Host
	// Snapshots says that the fleet keeps snapshots of its management clusters.
	Snapshots bool
	// Own is the cluster that the management cluster runs on. Alone says that it has taken this cluster over.
	Own   ClusterName
	Alone bool
	// Clusters of the parent that it has to take over. The cluster that it runs on comes first.
	Clusters []ClusterName
	// Repository is the management cluster's own repository, if it has one. Alone and Has then come from there (OwnMaster).
	Repository *v1alpha1.Repository
	// Has are the clusters that the fleet repo declares for this management cluster.
	Has []ClusterName
	// Begun lists the members of Clusters whose hand-over has begun, according to the fleet repo: the new one may have them already. ByWhom
	// names the run that began.
	Begun  []ClusterName
	ByWhom string
}

// ClusterName is the name of a cluster in the fleet repo.
type ClusterName struct{ Environment, Name string }

// String is ENVIRONMENT/NAME, as commands take it.
func (c ClusterName) String() string { return c.Environment + "/" + c.Name }

// Master finds a management cluster with a parent: by its name or, if the name is empty, by an environment. With an
// environment, the management cluster also takes over the parent's clusters of that environment. Master chooses the
// management cluster that has the environment, or the only one that is made in it. Errors: no such management cluster,
// or several; its cluster is not declared, or runs Flux as workload clusters do.
func (r *Repo) Master(name, environment string) (*Master, error) {
	m, err := r.findMaster(name, environment)
	if err != nil {
		return nil, err
	}
	parent, err := r.managementCluster(m.Parent)
	if err != nil {
		return nil, diag.Errorf("run it in the fleet repo of "+m.Parent+", or declare that here",
			"management cluster %s is made by %s, which this fleet does not have", m.Name, m.Parent)
	}
	all, _, err := r.Clusters()
	if err != nil {
		return nil, err
	}
	found := &Master{
		Name: m.Name, Parent: parent.Name, ParentHost: parent.Host, Snapshots: r.Fleet.Spec.Snapshots.To != "",
		Repository: m.Repository,
	}
	belongs := func(of string) bool {
		return environment != "" && of == environment || m.Repository != nil && slices.Contains(m.Repository.Environments, of)
	}
	var own, others []ClusterName
	for _, c := range all {
		full := ClusterName{c.Environment, c.Name}
		if c.ManagementCluster == m.Name {
			found.Has = append(found.Has, full)
		}
		switch {
		case c.Name == m.Name && c.ManagementCluster == m.Name:
			found.Own, found.Alone = full, true
		case c.ManagementCluster != parent.Name:
		case c.Name == m.Name:
			if r.exists(path.Join(path.Dir(c.File), "flux.yaml")) {
				return nil, diag.Errorf("remove the flux.yaml beside "+c.File,
					"cluster %s has the Flux of a workload cluster, but is to be a management cluster with its own Flux", full)
			}
			found.Own, own = full, append(own, full)
		case belongs(c.Environment) && !r.manages(parent, c.Name):
			others = append(others, full)
		}
	}
	if !found.Alone && len(own) == 0 && m.Repository == nil {
		return nil, diag.Errorf("declare it: `fleetctl cluster add "+m.Name+" --management "+parent.Name+" --push`",
			"management cluster %s declares no cluster %s, which %s is to run on", parent.Name, m.Name, m.Name)
	}
	found.Clusters = slices.Concat(own, others)
	return found, r.begun(found, parent)
}

// MasterNames are the management clusters that have a parent.
func (r *Repo) MasterNames() []string {
	var names []string
	for i := range r.Fleet.Spec.ManagementClusters {
		if m := &r.Fleet.Spec.ManagementClusters[i]; m.Parent != "" {
			names = append(names, m.Name)
		}
	}
	return names
}

func (r *Repo) findMaster(name, environment string) (*v1alpha1.ManagementCluster, error) {
	var children, having, made []*v1alpha1.ManagementCluster
	var names []string
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		if m.Parent == "" {
			continue
		}
		children, names = append(children, m), append(names, m.Name)
		if m.Name == name {
			return m, nil
		}
		if environment == "" {
			continue
		}
		if has, err := r.hasEnvironment(m, environment, ""); err != nil {
			return nil, err
		} else if has || m.Repository != nil && slices.Contains(m.Repository.Environments, environment) {
			having = append(having, m)
		}
		if parent, err := r.managementCluster(m.Parent); err == nil {
			if in, err := r.hasEnvironment(parent, environment, m.Name); err != nil {
				return nil, err
			} else if in {
				made = append(made, m)
			}
		}
	}
	if name != "" {
		return nil, diag.Unknown("management cluster with a parent", name, names, "fleet.yaml declares none")
	}
	if environment == "" && len(children) == 1 {
		return children[0], nil
	}
	for _, among := range [][]*v1alpha1.ManagementCluster{having, made} {
		switch {
		case len(among) == 1:
			return among[0], nil
		case len(among) > 1:
			var several []string
			for _, m := range among {
				several = append(several, m.Name)
			}
			return nil, diag.Usage("name one: --management NAME --stand-alone",
				"environment %s has several management clusters that others make: %s", environment, strings.Join(several, ", "))
		}
	}
	if len(children) == 0 {
		return nil, diag.Usage("`fleetctl management add NAME --parent ROOT` declares one",
			"no management cluster of this fleet has a parent that would make it")
	}
	if environment == "" {
		return nil, diag.Usage("name one: --management NAME", "several management clusters of this fleet have a parent: %s",
			strings.Join(names, ", "))
	}
	return nil, diag.Usage("name one, with --management and --stand-alone: "+strings.Join(names, ", "),
		"no management cluster with a parent has clusters in environment %s", environment)
}

// hasEnvironment tells whether a management cluster has a cluster of that name in an environment, or with an empty name
// any cluster but the one that it runs on.
func (r *Repo) hasEnvironment(m *v1alpha1.ManagementCluster, environment, name string) (bool, error) {
	places, err := r.places(name)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(places, func(p place) bool {
		own := name == "" && p.name() == m.Name
		return p.mgmt == m && p.environment == environment && !own && r.exists(p.file)
	}), nil
}

// OwnMaster completes m from r, the management cluster's own repository: whether it has taken over the cluster that it
// runs on, and which clusters it has. Errors: r is not its repository, or nobody declares the cluster that it runs on.
func (r *Repo) OwnMaster(m *Master) (*Master, error) {
	own, err := r.managementCluster(m.Name)
	if err != nil {
		return nil, diag.Wrap("read the fleet repo of "+m.Name, err, "declare it there, with parent: "+m.Parent)
	}
	if own.Parent != m.Parent || own.Repository != nil {
		return nil, diag.Errorf("give it parent: "+m.Parent+" there, and no repository",
			"the fleet repo of %s says that something else makes it", m.Name)
	}
	all, _, err := r.Clusters()
	if err != nil {
		return nil, err
	}
	whole := *m
	whole.Has, whole.Alone = nil, false // the parent's repo has its state from before its own repository existed
	for _, c := range all {
		if c.ManagementCluster != m.Name {
			continue
		}
		whole.Has = append(whole.Has, ClusterName{c.Environment, c.Name})
		if c.Name == m.Name {
			whole.Own, whole.Alone = ClusterName{c.Environment, c.Name}, true
		}
	}
	if !whole.Alone && whole.Own.Name == "" {
		return nil, diag.Errorf("declare it: `fleetctl cluster add "+m.Name+" --management "+m.Parent+" --push`",
			"neither management cluster %s nor the fleet repo of %s declares the cluster that %s is to run on", m.Parent, m.Name, m.Name)
	}
	return &whole, nil
}
