package scaffold

import (
	"cmp"
	"path"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// FeatureFiles make a new feature: two folders, for what only the platform may own and for what stands in its namespace. Errors: a bad name.
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

// FeatureTarget is what has a feature: every cluster of an environment, one of them, or the management cluster.
type FeatureTarget struct {
	Layout      layout.Layout
	Environment string
	// Cluster is the only one to have it; "" means all.
	Cluster string
	// Management says that the management cluster itself has it; Environment and Cluster are empty then.
	Management bool
}

// Applied is the folder that Flux applies for the target: the folder that an environment's clusters share, a single cluster's folder of the
// same environment, or the management cluster's folder.
func (t FeatureTarget) Applied() string {
	if t.Management {
		return t.Layout.Management()
	}
	if t.Cluster != "" {
		return t.Layout.Environment(t.Environment)
	}
	return t.Layout.Apps(t.Environment)
}

// FeatureFile is the path of what gives a feature to its target.
func (t FeatureTarget) FeatureFile(feature string) string {
	return path.Join(t.Applied(), t.Cluster, layout.FeaturesDir, feature+".yaml")
}

// EnableFeature makes what gives a feature to its target: two Flux Kustomizations, the one of the namespace after the other. A cluster's own
// Flux applies those of its environment, and the management cluster those of one cluster. Errors: bad names.
func EnableFeature(feature string, t FeatureTarget) (manifest.File, error) {
	if err := checkLayout(t.Layout); err != nil {
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

// checkFeature leaves room for what its Flux Kustomizations are called.
func checkFeature(name string) error { return CheckName("feature", name, 40) }
