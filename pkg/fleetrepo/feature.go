package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Feature is an add-on of the platform, with the environments and clusters that have it.
type Feature struct {
	Name string `json:"name"`
	// Environments that have it for their clusters.
	Environments []string `json:"environments"`
	// Partly names those Environments of which some clusters do not have it: another management cluster makes them, or they are in another
	// cloud, and the feature's file is not in their folder.
	Partly []string `json:"partly"`
	// Clusters that have the feature by themselves, as commands name them.
	Clusters []string `json:"clusters"`
	// ManagementClusters that have the feature themselves.
	ManagementClusters []string `json:"managementClusters"`
	// Chart is the address of the Helm chart that the feature installs, and Version the chart's version. Both are empty for a feature of
	// manifests.
	Chart   string `json:"chart,omitempty"`
	Version string `json:"version,omitempty"`
}

// Features lists the folders below features/, by name.
func (r *Repo) Features() ([]Feature, error) {
	names, err := r.folders(layout.FeaturesDir)
	if err != nil {
		return nil, err
	}
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	charts, _ := r.FeatureCharts() // files that cannot be read name no chart; validate says why
	called := calledAmong(places)
	all := make([]Feature, 0, len(names))
	for _, name := range names {
		f := Feature{Name: name, Environments: []string{}, Partly: []string{}, Clusters: []string{}, ManagementClusters: []string{}}
		for _, env := range r.EnvironmentNames() {
			has := func(l layout.Layout) bool {
				return r.exists(scaffold.FeatureTarget{Layout: l, Environment: env}.FeatureFile(name))
			}
			if !slices.ContainsFunc(r.layouts(), has) {
				continue
			}
			f.Environments = append(f.Environments, env)
			if slices.ContainsFunc(places, func(p place) bool {
				return p.environment == env && r.runsFlux(p.target()) && !has(p.at) && !r.exists(p.target().FeatureFile(name))
			}) {
				f.Partly = append(f.Partly, env)
			}
		}
		for _, p := range places {
			if r.exists(p.target().FeatureFile(name)) {
				f.Clusters = append(f.Clusters, called(p))
			}
		}
		f.Clusters = sortedSet(f.Clusters)
		for i := range r.Fleet.Spec.ManagementClusters {
			if m := &r.Fleet.Spec.ManagementClusters[i]; r.exists(onManagement(m).FeatureFile(name)) {
				f.ManagementClusters = append(f.ManagementClusters, m.Name)
			}
		}
		if i := slices.IndexFunc(charts, func(c v1alpha1.LockedFeature) bool { return c.Name == name }); i >= 0 {
			f.Chart, f.Version = charts[i].Chart, charts[i].Version
		}
		all = append(all, f)
	}
	return all, nil
}

// onManagement is a management cluster as the target of a feature.
func onManagement(m *v1alpha1.ManagementCluster) scaffold.FeatureTarget {
	return scaffold.FeatureTarget{Layout: m.Layout(), Management: true}
}

// AddFeature makes an empty feature. Existing files stay as they are.
func (r *Repo) AddFeature(name string) (*Edit, error) {
	files, err := scaffold.FeatureFiles(name)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Add feature " + name}
	e.Changes.Write(scaffold.Missing(files, r.exists)...)
	e.Notes = append(e.Notes,
		fmt.Sprintf("Put its objects into %s/%s and name them under resources; `fleetctl feature enable %s` enables it for clusters.",
			layout.FeaturesDir, name, name))
	return e, nil
}

// FeatureOptions name the targets of a feature: environments, clusters or management clusters. Without any the target is every environment.
type FeatureOptions struct {
	Environments, Clusters []string
	// Management means management clusters themselves: the cluster that ManagementCluster names, or all.
	Management        bool
	ManagementCluster string
}

// EnableFeature gives a feature to environments or clusters. Existing files stay as they are. Errors: unknown names.
func (r *Repo) EnableFeature(name string, opts FeatureOptions) (*Edit, error) {
	targets, where, err := r.targets(name, opts)
	if err != nil {
		return nil, err
	}
	if err := r.checkTwice(name, targets); err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Enable feature %s for %s", name, where), Environments: environmentsOf(targets)}
	if needs, err := r.needsFlux(name); err != nil {
		return nil, err
	} else if needs {
		const instead = "put objects of other kinds into the feature, such as those of `helm template`"
		if err := r.checkFlux(e, "feature "+name, instead, targets); err != nil {
			return nil, err
		}
	}
	for _, t := range targets {
		if t.Cluster != "" && r.runsFlux(t) && r.exists(scaffold.FeatureTarget{Layout: t.Layout, Environment: t.Environment}.FeatureFile(name)) {
			e.AsWanted = fmt.Sprintf("cluster %s has feature %s as every cluster of %s has it", t.Cluster, name, t.Environment)
			continue
		}
		file, err := scaffold.EnableFeature(name, t)
		if err != nil {
			return nil, err
		}
		if t.Cluster == "" && !t.Management {
			if err := r.withApps(e, t.Layout, t.Environment); err != nil {
				return nil, err
			}
		}
		if !r.exists(file.Path) {
			e.Changes.Write(file)
		}
		if err := r.enlist(&e.Changes, t.Applied(), file.Path, true); err != nil {
			return nil, err
		}
	}
	for _, name := range opts.Clusters {
		if r.cannotApply(name) {
			e.Notes = append(e.Notes, "An API server like that of cluster "+name+" gets nothing of it: the chart says that it cannot run Flux.")
		}
	}
	e.Notes, err = r.noteFluxless(e.Notes, targets)
	return e, err
}

// noteFluxless adds a note to notes for each environment among the targets that has clusters, of which none runs Flux: what an environment
// has reaches its clusters by their own Flux.
func (r *Repo) noteFluxless(notes []string, targets []scaffold.FeatureTarget) ([]string, error) {
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	for _, environment := range environmentsOf(slices.DeleteFunc(slices.Clone(targets), func(t scaffold.FeatureTarget) bool {
		return t.Cluster != "" || t.Management
	})) {
		clusters := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.environment != environment })
		if len(clusters) > 0 && !slices.ContainsFunc(clusters, func(p place) bool { return r.runsFlux(p.target()) }) {
			notes = append(notes, "No cluster of "+environment+" runs Flux, so none has it before one does.")
		}
	}
	return notes, nil
}

// checkTwice refuses to enable a feature for environments if some of their clusters have it by themselves: two Flux
// objects would then apply the same objects there.
func (r *Repo) checkTwice(name string, targets []scaffold.FeatureTarget) error {
	places, err := r.places("")
	if err != nil {
		return err
	}
	for _, p := range places {
		t := p.target()
		if r.runsFlux(t) && r.exists(t.FeatureFile(name)) &&
			slices.Contains(targets, scaffold.FeatureTarget{Layout: t.Layout, Environment: t.Environment}) {
			return diag.Errorf(fmt.Sprintf("take it from the cluster first: `fleetctl feature disable %s --cluster %s/%s`", name,
				t.Environment, t.Cluster),
				"cluster %s of %s has feature %s by itself already", t.Cluster, t.Environment, name)
		}
	}
	return nil
}

// runsFlux tells whether a cluster gets the shared manifests of its environment.
func (r *Repo) runsFlux(t scaffold.FeatureTarget) bool {
	return r.exists(path.Join(t.Layout.Cluster(t.Environment, t.Cluster), layout.FluxFile))
}

// cannotApply tells whether a cluster's chart says that its API server can run no Flux. Then no other Flux applies
// anything to the cluster either.
func (r *Repo) cannotApply(cluster string) bool {
	c, err := r.find(cluster)
	if err != nil {
		return false
	}
	ch, err := r.chart(c.Flavour)
	return err == nil && ch.annotations[fluxAnnotation] == string(scaffold.FluxNone)
}

// DisableFeature removes a feature from the given environments or clusters. Without any, it removes the feature from all targets that have
// it. Errors: unknown names.
func (r *Repo) DisableFeature(name string, opts FeatureOptions) (*Edit, error) {
	targets, where, err := r.candidates(name, opts)
	if err != nil {
		return nil, err
	}
	if opts.everybody() {
		if has := r.thatHave(name, targets); len(has) > 0 {
			targets, where = has, whose(has)
		}
	}
	e := &Edit{Summary: fmt.Sprintf("Disable feature %s for %s", name, where), Environments: environmentsOf(targets)}
	orphaned := false
	for _, t := range targets {
		everybody := scaffold.FeatureTarget{Layout: t.Layout, Environment: t.Environment}
		if t.Cluster != "" && !r.exists(t.FeatureFile(name)) && r.exists(everybody.FeatureFile(name)) {
			return nil, diag.Errorf("take it off all clusters of "+t.Environment+": `fleetctl feature disable "+name+" --environment "+t.Environment+
				"`",
				"cluster %s has feature %s from environment %s", t.Cluster, name, t.Environment)
		}
		orphaned = orphaned || t.Cluster != "" && r.exists(t.FeatureFile(name))
		e.Changes.Delete(t.FeatureFile(name))
		if r.holdsValues(name, t) { // nothing else would end the pause
			if err := r.holdValues(e, name, t, false); err != nil {
				return nil, err
			}
		}
		if err := r.enlist(&e.Changes, t.Applied(), t.FeatureFile(name), false); err != nil {
			return nil, err
		}
	}
	deletes := func(on string) {
		e.Notes = append(e.Notes, "Flux deletes the feature's objects on "+on+", also the data in its namespace.")
	}
	if slices.ContainsFunc(targets, func(t scaffold.FeatureTarget) bool { return t.Management }) {
		deletes("the management cluster")
	}
	if slices.ContainsFunc(targets, func(t scaffold.FeatureTarget) bool { return !t.Management && t.Cluster == "" }) {
		deletes("the clusters of the environment")
	}
	if orphaned {
		e.Notes = append(e.Notes,
			"The objects of a single cluster's feature stay on the cluster: its kubeconfig may not exist any more, and nothing must wait for it.")
	}
	return e, nil
}

// everybody tells whether the options name no target.
func (o FeatureOptions) everybody() bool {
	return len(o.Environments)+len(o.Clusters) == 0 && !o.Management
}

// candidates are the targets that the options name, or all possible targets if they name none.
func (r *Repo) candidates(name string, opts FeatureOptions) ([]scaffold.FeatureTarget, string, error) {
	targets, where, err := r.targets(name, opts)
	if err != nil || !opts.everybody() {
		return targets, where, err
	}
	places, err := r.places("")
	if err != nil {
		return nil, "", err
	}
	for _, p := range places {
		targets = append(targets, p.target())
	}
	for i := range r.Fleet.Spec.ManagementClusters {
		targets = append(targets, onManagement(&r.Fleet.Spec.ManagementClusters[i]))
	}
	return targets, where, nil
}

// thatHave returns the targets that have a feature.
func (r *Repo) thatHave(name string, targets []scaffold.FeatureTarget) []scaffold.FeatureTarget {
	return slices.DeleteFunc(slices.Clone(targets), func(t scaffold.FeatureTarget) bool { return !r.exists(t.FeatureFile(name)) })
}

// whose describes the owners of targets: environments, and single clusters.
func whose(targets []scaffold.FeatureTarget) string {
	var environments, clusters []string
	for _, t := range targets {
		switch {
		case t.Management:
			if !slices.Contains(clusters, "the management cluster") {
				clusters = append(clusters, "the management cluster")
			}
		case t.Cluster != "":
			clusters = append(clusters, "cluster "+t.Cluster)
		case !slices.Contains(environments, t.Environment):
			environments = append(environments, t.Environment)
		}
	}
	return strings.Join(append(environments, clusters...), ", ")
}

// environmentsOf are the environments of targets, each once.
func environmentsOf(targets []scaffold.FeatureTarget) []string {
	var names []string
	for _, t := range targets {
		if t.Environment != "" && !slices.Contains(names, t.Environment) {
			names = append(names, t.Environment)
		}
	}
	return names
}

// targets returns the targets that the options name, and a description of them.
func (r *Repo) targets(name string, opts FeatureOptions) ([]scaffold.FeatureTarget, string, error) {
	features, err := r.folders(layout.FeaturesDir)
	if err != nil {
		return nil, "", err
	}
	if !r.exists(layout.FeaturesDir+"/"+name) || name == "" {
		return nil, "", diag.Unknown("feature", name, features, "`fleetctl feature add "+name+"` makes one")
	}
	var all []scaffold.FeatureTarget
	if opts.Management {
		if len(opts.Clusters)+len(opts.Environments) > 0 {
			return nil, "", diag.Usage("make separate changes",
				"a feature is enabled for management clusters, for environments or for clusters, not for several of these at once")
		}
		return r.managementTargets(opts.ManagementCluster)
	}
	var names []string
	for _, cluster := range opts.Clusters {
		c, err := r.find(cluster)
		if err != nil {
			return nil, "", err
		}
		if t := (scaffold.FeatureTarget{Layout: c.at, Environment: c.Environment, Cluster: c.Name}); !slices.Contains(all, t) {
			all, names = append(all, t), append(names, cluster) // people repeat names in flags, also as dev/shop
		}
	}
	if len(opts.Clusters) > 0 && len(opts.Environments) == 0 {
		return all, "cluster " + strings.Join(names, ", "), nil
	}
	if len(opts.Clusters) > 0 {
		return nil, "", diag.Usage("make separate changes", "a feature is enabled for environments or for clusters, not both at once")
	}
	environments, err := r.chosen(opts.Environments)
	if err != nil {
		return nil, "", err
	}
	for _, env := range environments {
		for _, l := range r.everyLayoutIn(env) {
			all = append(all, scaffold.FeatureTarget{Layout: l, Environment: env})
		}
	}
	return all, strings.Join(environments, ", "), nil
}

// managementTargets returns management clusters as targets of a feature: the one with that name, or all.
func (r *Repo) managementTargets(name string) ([]scaffold.FeatureTarget, string, error) {
	var all []scaffold.FeatureTarget
	var names []string
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		if name == "" || m.Name == name {
			all, names = append(all, onManagement(m)), append(names, m.Name)
		}
	}
	if len(all) == 0 {
		_, err := r.Fleet.ManagementCluster(name)
		return nil, "", err
	}
	return all, "management cluster " + strings.Join(names, ", "), nil
}

// target returns the cluster as a target of a feature.
func (p place) target() scaffold.FeatureTarget {
	return scaffold.FeatureTarget{Layout: p.at, Environment: p.environment, Cluster: p.name()}
}

// FeatureNames are the names of all features.
func (r *Repo) FeatureNames() []string {
	names, err := r.folders(layout.FeaturesDir)
	if err != nil {
		return nil
	}
	return names
}
