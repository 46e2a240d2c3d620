package scaffold

import (
	"path"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// NetworkKustomization is the kustomization.yaml of a network: it lists the files of its folder that are applied, and is the place for what
// a team changes about them.
func NetworkKustomization(name string, resources []string) (manifest.File, error) {
	content, err := execute("network.yaml", struct {
		Name      string
		Resources []string
	}{name, resources})
	return manifest.File{Path: path.Join(layout.CNIDir(name), "kustomization.yaml"), Content: content}, err
}
