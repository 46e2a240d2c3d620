package scaffold

import (
	"path"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// mainSource is the GitRepository with the manifests of Flux itself.
const mainSource = "flux-system"

// Environment is a group of clusters that change together.
type Environment struct {
	// Name of the environment: a DNS label of at most 40 characters.
	Name string
	// Source is the GitRepository in the namespace flux-system that the environment follows; "" means flux-system, the branch of the
	// fleet repo.
	Source string
	// Unreleased means that the environment's channel has no tag yet with the environment's folder. Then Flux applies nothing.
	Unreleased bool
}

// EnvironmentFiles returns the files of a new environment: the Flux Kustomization that applies its folder, and the folder common that all
// its clusters share. The folder apps in common holds the manifests for the clusters themselves.
func EnvironmentFiles(at layout.Layout, env Environment) ([]manifest.File, error) {
	if err := CheckLayout(at); err != nil {
		return nil, err
	}
	if err := CheckName("environment", env.Name, 40); err != nil {
		return nil, err
	}
	if env.Name == layout.CommonDir {
		return nil, diag.Usage("choose another name", "environment %q would use the folder for the objects that all environments share",
			env.Name)
	}
	if env.Source == "" {
		env.Source = mainSource
	}
	if err := CheckName("source", env.Source, 63); err != nil {
		return nil, err
	}
	if name := at.ClustersName(env.Name); len(name) > 63 {
		return nil, diag.Usage("choose a shorter name for the environment, or for the cloud",
			"the name of the Kustomization that applies the environment is longer than 63 characters: %s", name)
	}
	data := struct {
		Name, Environment, Path, Source string
		OwnSource                       bool
	}{at.ClustersName(env.Name), env.Name, at.Environment(env.Name), env.Source, env.Source != mainSource}
	out := make([]manifest.File, 0, 3)
	for _, f := range []struct{ template, path string }{
		{"clusters.yaml", at.ClustersFile(env.Name)},
		{"common.yaml", path.Join(data.Path, layout.CommonDir, "kustomization.yaml")},
		{"environment.yaml", path.Join(at.Apps(env.Name), "environment.yaml")},
	} {
		if env.Unreleased && f.path == at.ClustersFile(env.Name) {
			continue
		}
		content, err := execute(f.template, data)
		if err != nil {
			return nil, err
		}
		out = append(out, manifest.File{Path: f.path, Content: content})
	}
	return out, nil
}
