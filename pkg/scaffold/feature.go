package scaffold

import (
	"cmp"
	"path"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// FeatureFiles returns the files of a new feature, in two folders: one for cluster-scoped objects and the namespace, and one for objects in
// the namespace. Errors: a bad name.
func FeatureFiles(name string) ([]manifest.File, error) {
	if err := checkFeature(name); err != nil {
		return nil, err
	}
	var out []manifest.File
	for template, target := range map[string]string{
		"non-namespaced.yaml": "non-namespaced/kustomization.yaml", "namespace.yaml": "non-namespaced/namespace.yaml",
		"namespaced.yaml": "namespaced/kustomization.yaml",
	} {
		content, err := execute("feature/"+template, struct{ Feature string }{name})
		if err != nil {
			return nil, err
		}
		out = append(out, manifest.File{Path: path.Join(layout.FeaturesDir, name, target), Content: content})
	}
	return sorted(out), nil
}

// FeatureTarget names the clusters that get a feature: all clusters of an environment, one of them, or the management cluster.
type FeatureTarget struct {
	Layout      layout.Layout
	Environment string
	// Cluster is the only cluster of the environment with the feature; "" means all.
	Cluster string
	// Management means the management cluster itself. Environment and Cluster are empty then.
	Management bool
}

// Applied returns the folder that Flux applies for the target: the folder that an environment's clusters share, the folder of the
// environment for a single cluster, or the management cluster's folder.
func (t FeatureTarget) Applied() string {
	if t.Management {
		return t.Layout.Management()
	}
	if t.Cluster != "" {
		return t.Layout.Environment(t.Environment)
	}
	return t.Layout.Apps(t.Environment)
}

// FeatureFile returns the path of the file of EnableFeature.
func (t FeatureTarget) FeatureFile(feature string) string {
	return path.Join(t.Applied(), t.Cluster, layout.FeaturesDir, feature+".yaml")
}

// EnableFeature returns the file that gives a feature to its target. The file has two Flux Kustomizations. The one for the objects in the
// namespace waits for the other. A cluster's own Flux applies the file for all clusters of its environment; the management cluster's Flux
// applies the file for a single cluster. Errors: bad names.
func EnableFeature(feature string, t FeatureTarget) (manifest.File, error) {
	if err := CheckLayout(t.Layout); err != nil {
		return manifest.File{}, err
	}
	if err := checkFeature(feature); err != nil {
		return manifest.File{}, err
	}
	data := struct {
		Feature, Environment, Cluster, Name, Namespace string
		Management                                     bool
	}{feature, t.Environment, t.Cluster, "feature-" + feature, cmp.Or(t.Cluster, mainSource), t.Management}
	content, err := execute("feature/apply.yaml", data)
	return manifest.File{Path: t.FeatureFile(feature), Content: content}, err
}

// checkFeature checks a feature's name. Its length leaves room for the names of the Flux Kustomizations.
func checkFeature(name string) error { return CheckName("feature", name, 40) }
