// Package manifests makes the manifests that projects publish with their releases out of their modules' folders.
package manifests

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build is `kustomize build` without the load restrictor: the projects' folders lead out of themselves.
func build(dir string) ([]byte, error) {
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w", dir, err)
	}
	return resources.AsYaml()
}

// replace puts text in the place of the only occurrence of old. That it is there, and once, is checked: a new version
// may have moved it, and a manifest that pulls an image nobody has would show much later.
func replace(manifest []byte, old, text string) ([]byte, error) {
	if n := bytes.Count(manifest, []byte(old)); n != 1 {
		return nil, fmt.Errorf("the manifest has %q %d times, not once: its project changed, look at the recipe", old, n)
	}
	return bytes.Replace(manifest, []byte(old), []byte(text), 1), nil
}
