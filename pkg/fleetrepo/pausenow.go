package fleetrepo

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// FluxObject is a Flux object that a pause with immediate effect suspends.
type FluxObject struct {
	// ManagementCluster with the object, or with the access to Cluster.
	ManagementCluster string
	// Cluster is the workload cluster whose own Flux has the object; "" for the management cluster's Flux.
	Cluster               string
	Kind, Namespace, Name string
	// Below means also the objects of Flux that this one, a Kustomization, has applied on the management cluster.
	Below bool
	// InGit means that Git pauses what the object applies, without suspending the object itself.
	InGit bool
}

// systemNamespace is the namespace of Flux on every cluster.
const systemNamespace = "flux-system"

// PausedByCluster returns the objects that a pause of a cluster suspends at once.
func (r *Repo) PausedByCluster(name string) ([]FluxObject, error) {
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	return []FluxObject{{ManagementCluster: c.ManagementCluster, Kind: "HelmRelease", Namespace: c.Name, Name: c.Name}}, nil
}

// PausedByEnvironment returns the objects that a pause of an environment suspends at once: the Kustomizations of its clusters with all that
// they have applied, and the source and the first Kustomization of each cluster's own Flux. Those of a cluster without Flux are on the
// management cluster, too.
func (r *Repo) PausedByEnvironment(name string) ([]FluxObject, error) {
	if err := r.CheckEnvironment(name); err != nil {
		return nil, err
	}
	var all []FluxObject
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		for _, l := range r.layoutsIn(m, name) {
			if file := l.ClustersFile(name); r.exists(file) {
				all = append(all, FluxObject{
					ManagementCluster: m.Name, Kind: "Kustomization", Namespace: systemNamespace, Name: l.ClustersName(name),
					Below: true, InGit: r.isPaused(file),
				})
			}
		}
	}
	err := r.eachIn([]string{name}, func(p place, cluster string, own bool) {
		if own {
			o := FluxObject{ManagementCluster: p.mgmt.Name, Cluster: cluster, Namespace: systemNamespace}
			o.Kind, o.Name = "GitRepository", systemNamespace
			all = append(all, o)
			o.Kind, o.Name = "Kustomization", "apps"
			all = append(all, o)
		}
	})
	return all, err
}

// PausedByFeature returns the objects that a pause of a feature suspends at once: its Kustomizations, and its HelmReleases where there is a
// Flux that acts on them. Another Kustomization brings the values that a HelmRelease reads. Errors are those of Having.
func (r *Repo) PausedByFeature(name string, opts FeatureOptions) ([]FluxObject, error) {
	having, err := r.Having(name, opts)
	if err != nil {
		return nil, err
	}
	releases, err := r.featureReleases(name)
	if err != nil {
		return nil, err
	}
	var all []FluxObject
	add := func(o FluxObject) {
		if !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	applies := func(o FluxObject) {
		o.Kind = "Kustomization"
		for _, part := range []string{"feature-" + name + "-non-namespaced", "feature-" + name} {
			o.Name = part
			add(o)
		}
	}
	installs := func(o FluxObject) {
		o.Kind = "HelmRelease"
		for _, release := range releases {
			o.Namespace, o.Name = release.namespace, release.name
			add(o)
		}
	}
	for _, t := range having {
		for i := range r.Fleet.Spec.ManagementClusters {
			m := &r.Fleet.Spec.ManagementClusters[i]
			switch {
			case !slices.Contains(r.Fleet.Layouts(m), t.Layout):
				continue
			case t.Management:
				applies(FluxObject{ManagementCluster: m.Name, Namespace: systemNamespace})
				installs(FluxObject{ManagementCluster: m.Name})
				continue
			case t.Cluster != "":
				applies(FluxObject{ManagementCluster: m.Name, Namespace: t.Cluster})
			}
			err := r.eachIn([]string{t.Environment}, func(p place, cluster string, own bool) {
				switch {
				case p.mgmt.Name != m.Name || p.at != t.Layout || t.Cluster != "" && t.Cluster != cluster:
					return
				case t.Cluster == "" && own:
					applies(FluxObject{ManagementCluster: m.Name, Cluster: cluster, Namespace: systemNamespace})
				case t.Cluster == "":
					applies(FluxObject{ManagementCluster: m.Name, Namespace: cluster})
				}
				if own {
					installs(FluxObject{ManagementCluster: m.Name, Cluster: cluster})
				}
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// featureRelease is a HelmRelease of a feature.
type featureRelease struct{ namespace, name string }

// featureReleases returns the HelmReleases among the files of a feature. The namespace in a kustomization.yaml beside one comes first.
func (r *Repo) featureReleases(feature string) ([]featureRelease, error) {
	files, err := r.filesBelow(path.Join(layout.FeaturesDir, feature))
	if err != nil {
		return nil, err
	}
	var all []featureRelease
	for _, file := range files {
		if ext := path.Ext(file); ext != ".yaml" && ext != ".yml" {
			continue
		}
		src, err := r.read(file)
		if err != nil {
			return nil, fmt.Errorf("read feature %s: %w", feature, err)
		}
		documents, err := yamledit.Parse(src)
		if err != nil {
			continue // validate reports it, and Flux applies nothing of it
		}
		for _, d := range documents {
			if !isFlux(d) || text(yamledit.Find(d, "kind")) != "HelmRelease" {
				continue
			}
			namespace := ""
			if k := r.kustomizationIn(path.Dir(file)); k != "" {
				if src, err := r.read(k); err == nil {
					namespace = fieldOf(src, yamledit.Path{"namespace"})
				}
			}
			all = append(all, featureRelease{
				cmp.Or(namespace, text(yamledit.Find(d, "metadata", "namespace")), systemNamespace), text(yamledit.Find(d, "metadata", "name")),
			})
		}
	}
	return all, nil
}

// PausedByChannel lists the objects that pausing a channel suspends: its source, and the source of each cluster whose own Flux follows it.
// Before the first promotion of a channel, its environments follow another one. Errors: those of PauseChannel, except for main.
func (r *Repo) PausedByChannel(name string) ([]FluxObject, error) {
	if err := r.checkChannel(name); err != nil {
		return nil, err
	}
	var all []FluxObject
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		source := systemNamespace
		if name != v1alpha1.MainChannel {
			if source = name; !r.exists(m.Layout().SourceFile(name)) {
				continue
			}
		}
		all = append(all, FluxObject{ManagementCluster: m.Name, Kind: "GitRepository", Namespace: systemNamespace, Name: source})
	}
	if len(all) == 0 {
		return nil, noSource(name)
	}
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	var environments []string
	for _, p := range places {
		environments = append(environments, p.environment)
	}
	err = r.eachIn(sortedSet(environments), func(p place, cluster string, own bool) {
		if own && r.followed(p.mgmt, p.at, p.environment, r.isReleased(p.mgmt, p.at, p.environment)).Name == name {
			all = append(all, FluxObject{
				ManagementCluster: p.mgmt.Name, Cluster: cluster, Kind: "GitRepository",
				Namespace: systemNamespace, Name: systemNamespace,
			})
		}
	})
	return all, err
}

// eachIn calls do for each cluster of environments whose apps a Flux applies, its own or the management cluster's.
func (r *Repo) eachIn(environments []string, do func(p place, cluster string, own bool)) error {
	places, err := r.places("")
	if err != nil {
		return err
	}
	for _, p := range places {
		t := p.target()
		if !slices.Contains(environments, p.environment) || !r.runsFlux(t) {
			continue
		}
		file := path.Join(t.Layout.Cluster(t.Environment, t.Cluster), layout.FluxFile)
		src, err := r.read(file)
		if err != nil {
			return fmt.Errorf("read how cluster %s runs Flux: %w", t.Cluster, err)
		}
		documents, err := documentsOf(file, src)
		if err != nil {
			return err
		}
		own := slices.ContainsFunc(documents, func(d *yaml.Node) bool { return text(yamledit.Find(d, "metadata", "name")) == t.Cluster+"-sync" })
		do(p, t.Cluster, own)
	}
	return nil
}
