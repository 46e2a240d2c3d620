package scaffold

import (
	"path"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// NetworkKustomization returns the kustomization.yaml of a network. It lists the files of the folder that Flux applies, and is the place
// for a team's patches.
func NetworkKustomization(name string, resources []string) (manifest.File, error) {
	content, err := execute("network.yaml", struct {
		Name      string
		Resources []string
	}{name, resources})
	return manifest.File{Path: path.Join(layout.CNIDir(name), "kustomization.yaml"), Content: content}, err
}
