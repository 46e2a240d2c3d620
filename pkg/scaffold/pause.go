package scaffold

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// PausePatches returns the patches that a paused environment has in the Flux Kustomization of its clusters. They suspend the Flux objects
// that the Kustomization applies: the HelmReleases and HelmCharts of its clusters, and the Kustomizations that work on the clusters. Three
// kinds of Kustomizations go on, because they carry the pause further: two suspend the source of the cluster's own Flux, and the third
// suspends what the management cluster's Flux applies for a cluster without Flux. To suspend the Kustomization of the clusters itself would
// stop nothing: what it has applied reconciles by itself, and a suspended parent would suspend no child.
func PausePatches() ([]*yaml.Node, error) {
	content, err := execute("pause.yaml", nil)
	if err != nil {
		return nil, err
	}
	documents, err := yamledit.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read the patches of a paused environment: %w", err)
	}
	return documents[0].Content, nil
}

// IsPausePatch tells whether the text of a patch is that of one of PausePatches.
func IsPausePatch(text string) bool {
	return strings.HasPrefix(text, "# From fleetctl environment pause;")
}
