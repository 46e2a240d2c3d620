package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// PauseEnvironment keeps changes in Git from the clusters of an environment, or lets them through again. On every management cluster it
// pauses the Flux Kustomization that applies the clusters. If the environment follows a branch, it also pauses the Kustomizations of its
// clusters' own Flux. Errors: an unknown environment, an environment that nothing applies.
func (r *Repo) PauseEnvironment(name string, paused bool) (*Edit, error) {
	if err := r.CheckEnvironment(name); err != nil {
		return nil, err
	}
	// In an environment that follows tags, it changes nothing that needs a promotion.
	e := &Edit{Summary: pauses(paused) + " environment " + name}
	found := false
	for _, at := range r.everyLayoutIn(name) {
		there, err := r.pauseIn(e, at, name, paused)
		if err != nil {
			return nil, err
		}
		found = found || there
	}
	if !found {
		return nil, diag.Errorf("`fleetctl init`, or the first `fleetctl promote` of its channel, adds the Kustomization that applies it",
			"nothing applies environment %s yet", name)
	}
	if paused {
		e.Notes = append(e.Notes, "Changes in Git no longer reach its clusters; Cluster API still manages their machines.")
	}
	return e, nil
}

// pauseIn is PauseEnvironment for one cloud of a management cluster. It tells whether a Flux Kustomization applies the environment there.
func (r *Repo) pauseIn(e *Edit, at layout.Layout, name string, paused bool) (bool, error) {
	found, err := r.suspendIn(e, at.ClustersFile(name), paused, anyNamed("Kustomization"))
	if err != nil || r.Fleet.ChannelOf(name).IsTag() { // the clusters run the files of the tag
		return found, err
	}
	files, err := r.filesBelow(at.Sync(name))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".yaml") && !strings.HasSuffix(file, ".sops.yaml") {
			if _, err := r.suspendIn(e, file, paused, anyNamed("Kustomization", "apps")); err != nil {
				return false, err
			}
		}
	}
	return found, nil
}

// PauseFeature keeps changes of a feature in Git from its clusters, or lets them through again. Errors: unknown names, a feature that none
// of the named targets has.
func (r *Repo) PauseFeature(name string, opts FeatureOptions, paused bool) (*Edit, error) {
	having, err := r.Having(name, opts)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: pauses(paused) + " feature " + name, Environments: environmentsOf(having)}
	for _, t := range having {
		if _, err := r.suspendIn(e, t.FeatureFile(name), paused, anyNamed("Kustomization")); err != nil {
			return nil, err
		}
	}
	if paused {
		e.Notes = append(e.Notes, "The objects of the feature stay. Changes in Git no longer reach them, and Flux does not undo changes by hand.")
	}
	return e, nil
}

// Having returns the targets that have a feature. Without named targets it returns all that have the feature. Errors are those of
// PauseFeature.
func (r *Repo) Having(name string, opts FeatureOptions) ([]scaffold.FeatureTarget, error) {
	targets, where, err := r.candidates(name, opts)
	if err != nil {
		return nil, err
	}
	having := r.thatHave(name, targets)
	switch {
	case len(having) > 0:
	case opts.everybody():
		return nil, diag.Usage("`fleetctl feature enable "+name+"` gives it to clusters", "nobody has feature %s", name)
	default:
		return nil, diag.Usage("`fleetctl feature list` shows who has it", "nobody of %s has feature %s", where, name)
	}
	return having, nil
}

// PauseChannel stops Flux from fetching the source of a channel on every management cluster, or resumes this. Meanwhile
// the environments stay at their revision. Errors: an unknown channel, the fleet repo's branch itself, a channel
// without a source.
func (r *Repo) PauseChannel(name string, paused bool) (*Edit, error) {
	if err := r.checkChannel(name); err != nil {
		return nil, err
	}
	if name == v1alpha1.MainChannel {
		return nil, diag.Usage("`--now` suspends it on the cluster",
			"the channel %s cannot be paused by a commit: Flux would not see the later commit that resumes it", name)
	}
	// The edit concerns environments that follow the channel, but needs no promotion: the source is in the management
	// cluster's own folder.
	e := &Edit{Summary: pauses(paused) + " channel " + name}
	found := false
	for i := range r.Fleet.Spec.ManagementClusters {
		there, err := r.suspendIn(e, r.Fleet.Spec.ManagementClusters[i].Layout().SourceFile(name), paused, anyNamed("GitRepository"))
		if err != nil {
			return nil, err
		}
		found = found || there
	}
	if !found {
		return nil, diag.Errorf("its first `fleetctl promote` makes it", "channel %s has no source yet", name)
	}
	if paused {
		e.Notes = append(e.Notes,
			"Its environments stay at their revision: a promotion, or a commit to its branch, reaches them only after `fleetctl channel resume`.")
	}
	return e, nil
}

func (r *Repo) checkChannel(name string) error {
	var names []string
	for _, c := range r.Fleet.Channels() {
		names = append(names, c.Name)
	}
	if !slices.Contains(names, name) {
		return diag.Unknown("channel", name, names, madeChannel(name))
	}
	return nil
}

func pauses(paused bool) string {
	if paused {
		return "Pause"
	}
	return "Resume"
}

// anyNamed selects the objects of a kind of Flux: the named ones, or all without names.
func anyNamed(kind string, names ...string) func(gotKind, name string) bool {
	return func(gotKind, name string) bool {
		return gotKind == kind && (len(names) == 0 || slices.Contains(names, name))
	}
}

// suspendIn adds to an edit the suspension of the selected objects of a file, or its end. It tells whether the file has
// such objects; a missing file has none.
func (r *Repo) suspendIn(e *Edit, file string, suspended bool, selects func(kind, name string) bool) (bool, error) {
	if !r.exists(file) {
		return false, nil
	}
	src, err := r.read(file)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", file, err)
	}
	documents, err := documentsOf(file, src)
	if err != nil {
		return false, err
	}
	found := false
	for i, d := range documents {
		group, _, _ := strings.Cut(text(yamledit.Find(d, "apiVersion")), "/")
		if !strings.HasSuffix(group, ".toolkit.fluxcd.io") ||
			!selects(text(yamledit.Find(d, "kind")), text(yamledit.Find(d, "metadata", "name"))) {
			continue
		}
		found = true
		if suspended {
			src, err = yamledit.Set(src, i, yamledit.Path{"spec", "suspend"}, true)
		} else {
			src, err = yamledit.Remove(src, i, yamledit.Path{"spec", "suspend"})
		}
		if err != nil {
			return false, diag.Wrap("change "+yamledit.At(path.Clean(file), err), err, "change it in an editor")
		}
	}
	if found {
		e.Changes.Write(manifest.File{Path: file, Content: src})
	}
	return found, nil
}

// Paused returns the environments that are paused in Git, with notes that say how a commit gets through to them again.
func (r *Repo) Paused(environments []string) (paused, notes []string) {
	for _, env := range environments {
		channel := r.Fleet.ChannelOf(env).Name
		hint := ""
		for _, l := range r.everyLayoutIn(env) {
			switch {
			case r.isSuspended(l.ClustersFile(env)):
				hint = fmt.Sprintf("Environment %s is paused: `fleetctl environment resume %s` lets this through to its clusters.", env, env)
			case channel != v1alpha1.MainChannel && r.isSuspended(l.SourceFile(channel)):
				hint = fmt.Sprintf("Channel %s is paused: `fleetctl channel resume %s` lets this through to its environments.", channel, channel)
			}
		}
		if hint != "" {
			paused = append(paused, env)
			notes = append(notes, hint)
		}
	}
	return paused, sortedSet(notes)
}

// isSuspended tells whether the first object of a file is suspended. A file that is missing or cannot be read is not:
// other checks report it.
func (r *Repo) isSuspended(file string) bool {
	src, err := r.read(file)
	return err == nil && fieldOf(src, yamledit.Path{"spec", "suspend"}) == "true"
}

// FluxObject is a Flux object that a pause with immediate effect suspends.
type FluxObject struct {
	// ManagementCluster with the object, or with the access to Cluster.
	ManagementCluster string
	// Cluster is the workload cluster whose own Flux has the object; "" for the management cluster's Flux.
	Cluster               string
	Kind, Namespace, Name string
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

// PausedByEnvironment returns the objects that a pause of an environment suspends at once: the Kustomizations that apply its clusters, and
// those of each cluster.
func (r *Repo) PausedByEnvironment(name string) ([]FluxObject, error) {
	if err := r.CheckEnvironment(name); err != nil {
		return nil, err
	}
	var all []FluxObject
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		for _, l := range r.layoutsIn(m, name) {
			if r.exists(l.ClustersFile(name)) {
				all = append(all, FluxObject{
					ManagementCluster: m.Name, Kind: "Kustomization", Namespace: systemNamespace, Name: l.ClustersName(name),
				})
			}
		}
	}
	err := r.eachIn([]string{name}, func(p place, cluster string, own bool) {
		o := FluxObject{ManagementCluster: p.mgmt.Name, Kind: "Kustomization", Namespace: cluster, Name: cluster + "-apps"}
		if own {
			o.Cluster, o.Namespace, o.Name = cluster, systemNamespace, "apps"
		}
		all = append(all, o)
	})
	return all, err
}

// PausedByFeature returns the objects that a pause of a feature suspends at once. Errors are those of Having.
func (r *Repo) PausedByFeature(name string, opts FeatureOptions) ([]FluxObject, error) {
	having, err := r.Having(name, opts)
	if err != nil {
		return nil, err
	}
	var all []FluxObject
	add := func(o FluxObject) {
		o.Kind = "Kustomization"
		for _, part := range []string{"feature-" + name + "-non-namespaced", "feature-" + name} {
			o.Name = part
			if !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	for _, t := range having {
		for i := range r.Fleet.Spec.ManagementClusters {
			m := &r.Fleet.Spec.ManagementClusters[i]
			switch {
			case !slices.Contains(r.Fleet.Layouts(m), t.Layout):
			case t.Management:
				add(FluxObject{ManagementCluster: m.Name, Namespace: systemNamespace})
			case t.Cluster != "":
				add(FluxObject{ManagementCluster: m.Name, Namespace: t.Cluster})
			default:
				err = r.eachIn([]string{t.Environment}, func(p place, cluster string, own bool) {
					o := FluxObject{ManagementCluster: p.mgmt.Name, Namespace: cluster}
					if own {
						o.Cluster, o.Namespace = cluster, systemNamespace
					}
					if p.mgmt.Name == m.Name && p.at == t.Layout {
						add(o)
					}
				})
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// PausedByChannel lists the objects that pausing a channel suspends: its source, and the source of each cluster whose own Flux follows it.
func (r *Repo) PausedByChannel(name string) ([]FluxObject, error) {
	if err := r.checkChannel(name); err != nil {
		return nil, err
	}
	var all []FluxObject
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		source := "flux-system"
		if name != v1alpha1.MainChannel {
			if source = name; !r.exists(m.Layout().SourceFile(name)) {
				continue
			}
		}
		all = append(all, FluxObject{ManagementCluster: m.Name, Kind: "GitRepository", Namespace: systemNamespace, Name: source})
	}
	err := r.eachIn(r.Fleet.EnvironmentsOf(name), func(p place, cluster string, own bool) {
		if own {
			all = append(all, FluxObject{
				ManagementCluster: p.mgmt.Name, Cluster: cluster, Kind: "GitRepository",
				Namespace: systemNamespace, Name: "flux-system",
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
