package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// isFluxGroup tells whether Flux's controllers bring the CRDs of an API group along.
func isFluxGroup(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || group == "source.extensions.fluxcd.io"
}

// target is a workload cluster that objects are applied to.
type target struct{ managementCluster, name string }

// checkFluxless reports the objects of Flux that are applied to a workload cluster on which no Flux runs, once for each file. The cluster's
// API server does not know their kinds, so what comes with them is not applied either.
func (r *run) checkFluxless(j *judged) (out diag.Findings) {
	if r.isForeign() {
		return nil
	}
	knows := r.fluxGroups(j.objects)
	first, lacking := map[string]*object{}, map[string][]target{}
	var files []string
	for _, o := range j.checked {
		group, _, _ := strings.Cut(o.APIVersion, "/")
		if !isFluxGroup(group) {
			continue
		}
		for _, name := range o.Targets {
			t, file := target{o.ManagementCluster, name}, o.Source.File
			if knows[t][group] || knows[t][""] {
				continue
			}
			if first[file] == nil {
				first[file], files = o, append(files, file)
			}
			if !slices.Contains(lacking[file], t) {
				lacking[file] = append(lacking[file], t)
			}
		}
	}
	for _, file := range files {
		out = append(out, first[file].at("kind", RuleController, runNoFlux(lacking[file]),
			r.givesOwnFlux(lacking[file][0], j.placed.clusters)+sayInComment+RuleController+" reason"))
	}
	return out
}

// runNoFlux says that Flux runs on none of the clusters, and what comes of it.
func runNoFlux(clusters []target) string {
	if len(clusters) == 1 {
		return "cluster " + clusters[0].name +
			" runs no Flux of its own: its API server does not know this kind, and gets nothing of what comes with it"
	}
	var names []string
	for _, t := range clusters {
		names = append(names, t.name)
	}
	slices.Sort(names)
	const most = 5
	which := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		which += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return "these clusters run no Flux of their own: " + which +
		"; their API servers do not know this kind, and get nothing of what comes with it"
}

// givesOwnFlux is the hint for objects of Flux on a cluster without Flux.
func (r *run) givesOwnFlux(t target, clusters []*cluster) string {
	const instead = "put objects of other kinds there, such as those of `helm template`"
	for _, c := range clusters {
		switch {
		case c.name != t.name || c.mgmt.Name != t.managementCluster:
		case r.withoutFlux(c):
			return fmt.Sprintf("flavour %s cannot run Flux: %s", c.declared.Flavour, instead)
		default:
			return "`" + diag.ShellCommand("fleetctl", "cluster", "flux", c.environment+"/"+c.name, "--flux", "own") +
				"` gives the cluster a Flux of its own; or " + instead
		}
	}
	return instead
}

// fluxGroups returns the API groups of Flux that the API servers of workload clusters know; the group "" stands for all. A cluster that may
// get Flux in a way that this repo does not show counts as knowing all.
func (r *run) fluxGroups(all []*object) map[target]map[string]bool {
	knows := map[target]map[string]bool{}
	learn := func(managementCluster, group string, names ...string) {
		for _, name := range names {
			t := target{managementCluster, name}
			if knows[t] == nil {
				knows[t] = map[string]bool{}
			}
			knows[t][group] = true
		}
	}
	for _, k := range r.rendered.Kustomizations {
		if k.Incomplete || path.Base(k.Path) == layout.FluxDir {
			learn(k.ManagementCluster, "", k.Targets...)
		}
	}
	for _, o := range all {
		switch _, group, _ := strings.Cut(o.Name, "."); {
		case o.Kind == "CustomResourceDefinition" && isFluxGroup(group):
			learn(o.ManagementCluster, group, o.Targets...)
		case strings.HasPrefix(o.APIVersion, "fluxcd.controlplane.io/"): // the Flux operator installs Flux
			learn(o.ManagementCluster, "", o.Targets...)
		}
	}
	for _, rel := range r.rendered.Releases {
		if !rel.Rendered && strings.Contains(rel.Name+rel.ReleaseName+rel.Chart, "flux") {
			learn(rel.Object.ManagementCluster, "", append(slices.Clip(rel.Object.Targets), rel.Namespace)...)
		}
	}
	for i := range r.fleet.Spec.ManagementClusters { // init brings the Flux of a cluster that is a management cluster itself
		for j := range r.fleet.Spec.ManagementClusters {
			learn(r.fleet.Spec.ManagementClusters[i].Name, "", r.fleet.Spec.ManagementClusters[j].Name)
		}
	}
	return knows
}
