package fleetrepo

import (
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// heldAnnotation keeps Flux from applying an object of a file.
const heldAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"

// holdValues keeps the values of a paused feature's chart from the clusters of a target, or lets them through again. The values are in
// ConfigMaps that other Kustomizations apply, and a HelmRelease reads them whenever they change. The values of an environment reach all its
// clusters, so the pause of a single cluster holds only those of that cluster.
func (r *Repo) holdValues(e *Edit, name string, t scaffold.FeatureTarget, held bool) error {
	targets := []scaffold.FeatureTarget{t}
	if t.Cluster == "" && !t.Management {
		places, err := r.places("")
		if err != nil {
			return err
		}
		for _, p := range places {
			if p.at == t.Layout && p.environment == t.Environment {
				targets = append(targets, p.target())
			}
		}
	}
	for _, t := range targets {
		file, err := scaffold.FeatureValues(name, t, nil)
		if err != nil {
			return err
		}
		if !r.exists(file.Path) {
			continue
		}
		src, err := r.read(file.Path)
		if err != nil {
			return fmt.Errorf("read the values of feature %s: %w", name, err)
		}
		if !sameObject(src, file.Content) {
			continue // no values of fleetctl
		}
		if file.Content, err = withHold(src, held); err != nil {
			return diag.Wrap("change "+yamledit.At(file.Path, err), err, "change it in an editor")
		}
		e.Changes.Write(file)
	}
	if environment := (scaffold.FeatureTarget{Layout: t.Layout, Environment: t.Environment}); held && t.Cluster != "" {
		file, err := scaffold.FeatureValues(name, environment, nil)
		if err == nil && r.exists(file.Path) {
			e.Notes = append(e.Notes, fmt.Sprintf("The values in %s still reach cluster %s, like every cluster of %s.", file.Path, t.Cluster,
				t.Environment))
		}
	}
	return nil
}

// withHold sets the annotation of an object that Flux shall not apply, or removes it.
func withHold(src []byte, held bool) ([]byte, error) {
	at := yamledit.Path{"metadata", "annotations", heldAnnotation}
	if held {
		return yamledit.Set(src, 0, at, "disabled")
	}
	documents, err := yamledit.Parse(src)
	if err != nil || len(documents) == 0 {
		return src, err
	}
	if all := yamledit.Find(documents[0], "metadata", "annotations"); all != nil && len(all.Content) == 2 &&
		yamledit.Lookup(all, heldAnnotation) != nil {
		at = at[:2]
	}
	return yamledit.Remove(src, 0, at)
}

// holdsValues tells whether a pause of a feature holds the values of a target.
func (r *Repo) holdsValues(name string, t scaffold.FeatureTarget) bool {
	environment := scaffold.FeatureTarget{Layout: t.Layout, Environment: t.Environment}
	return r.isSuspended(t.FeatureFile(name)) || t.Cluster != "" && r.isSuspended(environment.FeatureFile(name))
}

// heldFile is a new file of values, held if the feature is paused there.
func (r *Repo) heldFile(e *Edit, name string, t scaffold.FeatureTarget, file manifest.File) (manifest.File, error) {
	if !r.holdsValues(name, t) {
		return file, nil
	}
	var err error
	if file.Content, err = withHold(file.Content, true); err != nil {
		return file, diag.Wrap("hold the values in "+file.Path, err, "")
	}
	note := fmt.Sprintf("Feature %s is paused: the values reach its HelmRelease when `fleetctl feature resume %s` lets them.", name, name)
	e.Notes = once(append(e.Notes, note))
	return file, nil
}
