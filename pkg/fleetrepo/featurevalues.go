package fleetrepo

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
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
		file, err := r.changeFeatureValues(name, t, set)
		if err != nil {
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

// changeFeatureValues returns the file with the values of a feature's chart for a target, with assignments over its present values. All
// else in the file stays, such as comments. If the values are so already, the whole file stays.
func (r *Repo) changeFeatureValues(name string, t scaffold.FeatureTarget, set []Assignment) (manifest.File, error) {
	made, err := scaffold.FeatureValues(name, t, nil)
	if err != nil {
		return made, err
	}
	file := manifest.File{Path: made.Path}
	present := ""
	if r.exists(file.Path) {
		if file.Content, err = r.read(file.Path); err != nil {
			return file, err
		}
		if present, err = valuesIn(file); err != nil {
			return file, err
		}
	}
	before, err := ParseValues(file.Path, []byte(present))
	if err != nil {
		return file, err
	}
	wanted, err := Assign(before, set)
	if err != nil {
		return file, err
	}
	if made, err = scaffold.FeatureValues(name, t, wanted); err != nil || file.Content == nil {
		return made, err
	}
	if reflect.DeepEqual(wanted, before) {
		return file, nil
	}
	changed, err := valuesIn(made)
	if err != nil {
		return file, err
	}
	if noted := strings.Contains(present, "#"); noted || len(before) > 0 {
		edited, err := assignInText(present, set, wanted)
		switch {
		case err == nil:
			changed = edited
		case noted: // to write the values anew would lose the comments
			return file, diag.Wrap("change the values in "+file.Path, err, "set the value there in an editor")
		}
	}
	file.Content, err = yamledit.SetText(file.Content, 0, valuesKey, changed)
	return file, diag.Wrap("change "+yamledit.At(file.Path, err), err, "set the value there in an editor")
}

// valuesKey is the place of the values in the ConfigMap of scaffold.FeatureValues.
var valuesKey = yamledit.Path{"data", "values.yaml"}

// assignInText makes assignments in the text of values, and keeps all else in it. Error: a text that then does not mean the wanted values.
func assignInText(src string, all []Assignment, wanted map[string]any) (string, error) {
	out := []byte(src)
	for _, a := range all {
		var err error
		if out, err = assignOne(out, a); err != nil {
			return "", err
		}
	}
	if after, err := decodeMap(out); err != nil || !reflect.DeepEqual(after, wanted) {
		return "", yamledit.ErrCannotEdit
	}
	return string(out), nil
}

// assignOne is assignInText for one assignment.
func assignOne(src []byte, a Assignment) ([]byte, error) {
	documents, err := yamledit.Parse(src)
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 || yamledit.IsNull(yamledit.Resolve(documents[0])) {
		return nil, yamledit.ErrCannotEdit // there is nothing but comments
	}
	there, value := yamledit.Find(documents[0], a.Path...), &yaml.Node{}
	if err := value.Encode(a.Value); err != nil {
		return nil, err
	}
	if last := len(a.Path) - 1; there == nil && last > 0 {
		if _, isItem := a.Path[last].(int); isItem {
			return yamledit.Append(src, 0, a.Path[:last], value)
		}
	}
	if there != nil && sameValue(there, value) {
		return src, nil
	}
	if there != nil && (value.Kind != yaml.ScalarNode || there.Kind != yaml.ScalarNode) {
		if src, err = yamledit.Remove(src, 0, a.Path); err != nil {
			return nil, err
		}
	}
	return yamledit.Set(src, 0, a.Path, a.Value)
}

// valuesIn returns the text of the values in a ConfigMap of scaffold.FeatureValues.
func valuesIn(file manifest.File) (string, error) {
	documents, err := documentsOf(file.Path, file.Content)
	if err != nil {
		return "", err
	}
	if len(documents) != 1 {
		return "", findingsOf(file.Path, diag.Errorf("remove the others from it, or delete it: then this command writes it anew",
			"it has %s, and should have one, the ConfigMap with the values", plain.Count(len(documents), "document")))
	}
	return text(yamledit.Find(documents[0], valuesKey...)), nil
}
