// Package flux makes Flux's own manifests and works with the Flux of a management cluster: install, sync, wait for a
// revision, suspend and resume, status. What it generates is what `flux bootstrap` would have: the stock flux CLI can
// take over at any time.
package flux

// Names that `flux bootstrap` uses and the stock flux CLI looks for.
const (
	// Namespace of Flux's controllers and of the objects that sync the fleet repo.
	Namespace = "flux-system"
	// Name of the GitRepository, the Kustomization and the source secret that sync the fleet repo.
	Name = "flux-system"

	// DecryptionSecret in Namespace holds the private age keys that decrypt what is encrypted in Git.
	DecryptionSecret = "sops-age"
	// DecryptionKey is the key in it. Flux knows keys of age by their ending.
	DecryptionKey = "age.agekey"

	// ComponentsFile holds Flux's CRDs and controllers.
	ComponentsFile = "gotk-components.yaml"
	// SyncFile holds the GitRepository and the Kustomization that sync the fleet repo.
	SyncFile = "gotk-sync.yaml"
	// TuningFile patches Flux's controllers for a management cluster.
	TuningFile = "gotk-tuning.yaml"
	// KustomizationFile ties them together. It belongs to the user once it is there: this is where Flux is customised.
	KustomizationFile = "kustomization.yaml"
)

// DefaultComponents are installed where none are chosen.
func DefaultComponents() []string {
	return []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"}
}

// AllComponents are the ones that Flux knows.
func AllComponents() []string {
	return append(DefaultComponents(), "image-reflector-controller", "image-automation-controller", "source-watcher")
}

const kustomizeController = "kustomize-controller"

// DefaultRegistry is where Flux's images come from.
const DefaultRegistry = "ghcr.io/fluxcd"
