// Package flux generates Flux's manifests and works with the Flux of a management cluster: install, sync, wait for a revision, suspend
// and resume, status. The manifests are the same as from `flux bootstrap`, so users can go on with the flux CLI at any time.
package flux

// Names that `flux bootstrap` uses and the stock flux CLI looks for.
const (
	// Namespace of Flux's controllers and of the objects that sync the fleet repo.
	Namespace = "flux-system"
	// Name of the GitRepository, the Kustomization and the source secret that sync the fleet repo.
	Name = "flux-system"

	// DecryptionSecret in Namespace holds the private age keys for encrypted files in Git.
	DecryptionSecret = "sops-age"
	// DecryptionKey is the key in that Secret. Flux recognises age keys by the suffix .agekey.
	DecryptionKey = "age.agekey"

	// ComponentsFile holds Flux's CRDs and controllers.
	ComponentsFile = "gotk-components.yaml"
	// SyncFile holds the GitRepository and the Kustomization that sync the fleet repo.
	SyncFile = "gotk-sync.yaml"
	// TuningFile patches Flux's controllers for a management cluster.
	TuningFile = "gotk-tuning.yaml"
	// KustomizationFile lists these files. fleetctl only makes it; after that it belongs to the user, who customises Flux there.
	KustomizationFile = "kustomization.yaml"
)

// DefaultComponents are the components of an installation that names none.
func DefaultComponents() []string {
	return []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"}
}

// AllComponents are all components of Flux.
func AllComponents() []string {
	return append(DefaultComponents(), "image-reflector-controller", "image-automation-controller", "source-watcher")
}

const kustomizeController = "kustomize-controller"

// DefaultRegistry is the registry of Flux's released images.
const DefaultRegistry = "ghcr.io/fluxcd"
