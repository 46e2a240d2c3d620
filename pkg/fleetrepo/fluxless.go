package fleetrepo

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// A cluster without a Flux of its own knows none of Flux's kinds. If the management cluster's Flux applied such an object there, it would
// report an error for ever, and apply nothing of what comes with the object.

// checkFlux returns an error if a single cluster that is to get objects of Flux cannot run them, or leaves Flux to the management cluster,
// and if no cluster of an environment that is to get them has a Flux of its own. It adds a note if a single cluster has no Flux yet, and if
// some clusters of an environment have none. what names the objects for people, and instead
// is what else the user can do.
func (r *Repo) checkFlux(e *Edit, what, instead string, targets []scaffold.FeatureTarget) error {
	places, err := r.places("")
	if err != nil {
		return err
	}
	able, unable := map[string]bool{}, map[string][]scaffold.FeatureTarget{}
	for _, p := range places {
		t := p.target()
		single := slices.Contains(targets, t)
		if !single && !(slices.Contains(targets, scaffold.FeatureTarget{Layout: t.Layout, Environment: t.Environment}) && r.runsFlux(t)) {
			continue
		}
		lacks, err := r.lacksFlux(p)
		switch {
		case err != nil:
			return err
		case !lacks:
			able[t.Environment] = true
		case single && !r.runsFlux(t) && !r.cannotApply(t.Environment+"/"+t.Cluster): // as before the first init
			e.Notes = append(e.Notes, fmt.Sprintf("Cluster %s runs no Flux of its own yet, which %s needs: %s.", t.Cluster, what,
				r.givesFlux(t, instead)))
		case single:
			return diag.Errorf(r.givesFlux(t, instead), "%s needs a Flux on the cluster itself, and cluster %s has none", what, t.Cluster)
		default:
			unable[t.Environment] = append(unable[t.Environment], t)
		}
	}
	for _, environment := range environmentsOf(targets) {
		clusters := unable[environment]
		if len(clusters) == 0 {
			continue
		}
		if !able[environment] {
			return diag.Errorf(r.givesFlux(clusters[0], instead), "%s needs a Flux on the cluster itself, and cluster %s of %s has none",
				what, clusters[0].Cluster, environment)
		}
		var names []string
		for _, t := range clusters {
			names = append(names, t.Cluster)
		}
		e.Notes = append(e.Notes, fmt.Sprintf("These clusters of %s cannot run it, because they have no Flux of their own: %s.", environment,
			plain.Names(sortedSet(names), 5)))
	}
	return nil
}

// givesFlux is the hint for objects of Flux on a cluster without a Flux of its own.
func (r *Repo) givesFlux(t scaffold.FeatureTarget, instead string) string {
	name := t.Environment + "/" + t.Cluster
	if r.cannotApply(name) {
		return "its flavour cannot run Flux: " + instead
	}
	return "`" + diag.ShellCommand("fleetctl", "cluster", "flux", name, "--flux", "own") + "` gives it one; or " + instead
}

// lacksFlux tells whether a cluster's API server knows none of Flux's kinds. A cluster that gets them in another way than by a Flux of its
// own, by CRDs in the repo or by Flux's operator, knows them.
func (r *Repo) lacksFlux(p place) (bool, error) {
	t := p.target()
	there, err := r.generated(path.Join(path.Dir(p.file), layout.FluxFile))
	if err != nil {
		return false, err
	}
	if there != nil && fluxOptions(t.Layout, t.Environment, t.Cluster, there).Flux != scaffold.FluxRemote || r.manages(p.mgmt, t.Cluster) {
		return false, nil
	}
	dirs := []string{path.Dir(p.file)}
	everybody := scaffold.FeatureTarget{Layout: t.Layout, Environment: t.Environment}
	enabled, err := r.enabledFor(t)
	if err != nil {
		return false, err
	}
	if there != nil { // it gets what all clusters of its environment get
		common := path.Join(t.Layout.Environment(t.Environment), layout.CommonDir)
		dirs = append(dirs, everybody.Applied(), path.Join(common, "non-namespaced"), path.Join(common, "namespaced"))
		shared, err := r.enabledFor(everybody)
		if err != nil {
			return false, err
		}
		enabled = append(enabled, shared...)
	}
	for _, name := range enabled {
		dirs = append(dirs, path.Join(layout.FeaturesDir, name))
	}
	for _, dir := range dirs {
		if _, brings, err := r.fluxIn(dir); err != nil || brings {
			return false, err
		}
	}
	return true, nil
}

// enabledFor returns the names of the features that are enabled for a target.
func (r *Repo) enabledFor(t scaffold.FeatureTarget) ([]string, error) {
	return r.files(path.Dir(t.FeatureFile("x")), "")
}

// fluxIn tells whether the files below a folder have objects of Flux, such as HelmReleases, and whether they bring the CRDs of such
// objects, or something that installs Flux. It passes over files that cannot be read, which validate reports.
func (r *Repo) fluxIn(dir string) (uses, brings bool, _ error) {
	names, err := r.filesBelow(dir)
	if err != nil {
		return false, false, err
	}
	for _, name := range names {
		src, err := r.read(name)
		if ext := path.Ext(name); err != nil || ext != ".yaml" && ext != ".yml" || !bytes.Contains(src, []byte("fluxcd")) {
			continue
		}
		documents, err := yamledit.Parse(src)
		if err != nil {
			continue
		}
		for _, d := range documents {
			group, _, _ := strings.Cut(text(yamledit.Find(d, "apiVersion")), "/")
			kind, object := text(yamledit.Find(d, "kind")), text(yamledit.Find(d, "metadata", "name"))
			_, ofCRD, _ := strings.Cut(object, ".")
			uses = uses || isFluxGroup(group)
			brings = brings || group == "fluxcd.controlplane.io" || kind == "CustomResourceDefinition" && isFluxGroup(ofCRD) ||
				kind == "HelmRelease" && strings.Contains(object, "flux")
		}
	}
	return uses, brings, nil
}

// isFluxGroup tells whether Flux's controllers bring the CRDs of an API group along.
func isFluxGroup(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || group == "source.extensions.fluxcd.io"
}

// needsFlux tells whether a feature works only on clusters with a Flux of their own.
func (r *Repo) needsFlux(feature string) (bool, error) {
	uses, brings, err := r.fluxIn(path.Join(layout.FeaturesDir, feature))
	return uses && !brings, err
}

// noteNeedsFlux adds a note about what an environment has that a cluster without a Flux of its own cannot run.
func (r *Repo) noteNeedsFlux(e *Edit, at layout.Layout, environment string) error {
	enabled, err := r.enabledFor(scaffold.FeatureTarget{Layout: at, Environment: environment})
	if err != nil {
		return err
	}
	var what []string
	for _, name := range enabled {
		needs, err := r.needsFlux(name)
		if err != nil {
			return err
		}
		if needs {
			what = append(what, "feature "+name)
		}
	}
	apps, err := r.Apps()
	if err != nil {
		return err
	}
	for _, a := range apps {
		if a.Environment == environment && a.Cloud == at.Cloud {
			what = append(what, "application "+a.Name)
		}
	}
	if len(what) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("It cannot run what needs a Flux on the cluster itself, of what %s has: %s.", environment,
			plain.Names(what, 5)))
	}
	return nil
}
