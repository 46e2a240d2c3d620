package manifests

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Flux returns the folder that manifestgen's install.Generate takes as its base, content by path in the bundle. flux2 is
// the folder of Flux's own module, controllers those of its controllers, by name.
func Flux(version, flux2 string, controllers map[string]string) (map[string][]byte, error) {
	files := map[string][]byte{}
	base := path.Join("flux", version)
	for name, module := range controllers {
		manifest, err := fluxController(filepath.Join(flux2, "manifests/bases", name), name, module)
		if err != nil {
			return nil, fmt.Errorf("flux controller %s: %w", name, err)
		}
		files[path.Join(base, name+".yaml")] = manifest
	}
	for _, name := range []string{"rbac", "policies"} {
		manifest, err := build(filepath.Join(flux2, "manifests", name))
		if err != nil {
			return nil, err
		}
		files[path.Join(base, name+".yaml")] = manifest
	}
	return files, nil
}

// fluxController builds flux2's base of a controller with the controller's own folders in the place of the release files
// that the base points at.
func fluxController(base, name, module string) ([]byte, error) {
	work, err := os.MkdirTemp("", "flux-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, os.DirFS(base)); err != nil {
		return nil, err
	}
	file := filepath.Join(work, "kustomization.yaml")
	kustomization, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parts := map[string]string{name + ".crds.yaml": "config/crd", name + ".deployment.yaml": "config/manager"}
	local, err := localResources(kustomization, func(release string) ([]byte, string, error) {
		folder, ok := parts[path.Base(release)]
		if !ok {
			return nil, "", fmt.Errorf("nothing stands for the release file %s", release)
		}
		manifest, err := build(filepath.Join(module, folder))
		return manifest, path.Base(release), err
	}, work)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, local, 0o644); err != nil {
		return nil, err
	}
	return build(work)
}

// localResources puts files below dir in the place of the kustomization's remote resources.
func localResources(kustomization []byte, content func(url string) ([]byte, string, error), dir string) ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(kustomization, &document); err != nil {
		return nil, err
	}
	resources, _ := document["resources"].([]any)
	for i, r := range resources {
		url, _ := r.(string)
		if !strings.HasPrefix(url, "https://") {
			continue
		}
		manifest, name, err := content(url)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), manifest, 0o644); err != nil {
			return nil, err
		}
		resources[i] = name
	}
	return yaml.Marshal(document)
}
