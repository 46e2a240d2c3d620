package fleetrepo

import (
	"fmt"
	"path"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// SetFeatureValues writes the values of a feature's chart for environments, for single clusters, or for management clusters, over their
// present values. Errors: unknown names, a feature without a chart, an environment whose folders Flux does not apply.
func (r *Repo) SetFeatureValues(name string, opts FeatureOptions, set []Assignment) (*Edit, error) {
	targets, where, err := r.targets(name, opts)
	if err != nil {
		return nil, err
	}
	if !r.exists(path.Join(layout.FeaturesDir, name, "namespaced", "release.yaml")) {
		return nil, diag.Errorf("`fleetctl feature add NAME --chart URL --version VERSION` makes one of a chart", "feature %s has no chart", name)
	}
	e := &Edit{Summary: fmt.Sprintf("Set values of feature %s for %s", name, where), Environments: environmentsOf(targets)}
	for _, t := range targets {
		if err := r.getsValues(t); err != nil {
			return nil, err
		}
		file, err := scaffold.FeatureValues(name, t, nil)
		if err != nil {
			return nil, err
		}
		values, err := r.featureValues(file.Path)
		if err != nil {
			return nil, err
		}
		if values, err = Assign(values, set); err != nil {
			return nil, err
		}
		if file, err = scaffold.FeatureValues(name, t, values); err != nil {
			return nil, err
		}
		if file, err = r.heldFile(e, name, t, file); err != nil {
			return nil, err
		}
		e.Changes.Write(file)
		if err := r.enlist(&e.Changes, valuesRoot(t, file.Path), file.Path, true); err != nil {
			return nil, err
		}
	}
	e.Notes, err = r.noteFluxless(e.Notes, targets)
	return e, err
}

// getsValues returns an error for a target to which no Flux brings values.
func (r *Repo) getsValues(t scaffold.FeatureTarget) error {
	if t.Management {
		return nil
	}
	if !r.exists(t.Layout.FoldersFile(t.Environment)) {
		return diag.Errorf("`fleetctl environment wire "+t.Environment+"` does that", "Flux does not apply the folders of %s yet", t.Environment)
	}
	if t.Cluster == "" || r.runsFlux(t) {
		return nil
	}
	hint := fmt.Sprintf("`fleetctl cluster flux %s/%s` gives it one", t.Environment, t.Cluster)
	if r.cannotApply(t.Environment + "/" + t.Cluster) {
		hint = "its flavour cannot run Flux: values reach only the other clusters of " + t.Environment + ", with --environment"
	}
	return diag.Errorf(hint, "cluster %s runs no Flux", t.Cluster)
}

// valuesRoot is the folder that Flux applies for a file with values. A Flux Kustomization applies the folder namespaced of an environment
// or a cluster. That of a management cluster is a part of what its Flux applies.
func valuesRoot(t scaffold.FeatureTarget, file string) string {
	if t.Management {
		return t.Applied()
	}
	return path.Dir(file)
}

// valuesOfFeature returns the existing files of scaffold.FeatureValues for a feature, each with its valuesRoot. It leaves out a file with
// such a name and other content.
func (r *Repo) valuesOfFeature(name string) (roots map[string]string, _ error) {
	targets, err := r.everyTarget()
	if err != nil {
		return nil, err
	}
	roots = map[string]string{}
	for _, t := range targets {
		file, err := scaffold.FeatureValues(name, t, nil)
		if err != nil {
			return nil, err
		}
		if !r.exists(file.Path) {
			continue
		}
		there, err := r.read(file.Path)
		if err != nil {
			return nil, err
		}
		if sameObject(there, file.Content) {
			roots[file.Path] = valuesRoot(t, file.Path)
		}
	}
	return roots, nil
}

// everyTarget are all environments, clusters and management clusters that can have values for a feature.
func (r *Repo) everyTarget() (all []scaffold.FeatureTarget, err error) {
	for _, env := range r.EnvironmentNames() {
		for _, l := range r.layouts() {
			all = append(all, scaffold.FeatureTarget{Layout: l, Environment: env})
		}
	}
	places, err := r.places("")
	for _, p := range places {
		all = append(all, p.target())
	}
	for i := range r.Fleet.Spec.ManagementClusters {
		all = append(all, onManagement(&r.Fleet.Spec.ManagementClusters[i]))
	}
	return all, err
}

// sameObject tells whether two files declare the same one object, by kind and name.
func sameObject(a, b []byte) bool {
	one, err := yamledit.Parse(a)
	other, otherErr := yamledit.Parse(b)
	if err != nil || otherErr != nil || len(one) != 1 || len(other) != 1 {
		return false
	}
	for _, at := range [][]any{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		if text(yamledit.Find(one[0], at...)) != text(yamledit.Find(other[0], at...)) {
			return false
		}
	}
	return true
}

// featureValues returns the values in a ConfigMap of scaffold.FeatureValues; none if there is no such file.
func (r *Repo) featureValues(file string) (map[string]any, error) {
	if !r.exists(file) {
		return map[string]any{}, nil
	}
	src, err := r.read(file)
	if err != nil {
		return nil, err
	}
	documents, err := documentsOf(file, src)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, findingsOf(file, diag.Errorf("remove the others from it, or delete it: then this command writes it anew",
			"it has %s, and should have one, the ConfigMap with the values", plain.Count(len(documents), "document")))
	}
	return ParseValues(file, []byte(text(yamledit.Find(documents[0], "data", "values.yaml"))))
}
