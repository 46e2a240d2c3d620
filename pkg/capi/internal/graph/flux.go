package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// The annotations in which Helm records the release of an object.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
	// historyType is the type of the Secrets with the history of a Helm release.
	historyType = "helm.sh/release.v1"
)

// takeFlux takes the Flux objects with Flux's own state, so that the target's Flux continues where this one stopped. It leaves out kinds
// that cannot be suspended, because the target's Flux would act on them before the hand-over is complete. Flux makes these again from the
// fleet repo.
func (g *graph) takeFlux() {
	moved := g.movedReleases()
	for _, n := range g.nodes {
		if !OfFlux(n.kind.Group) || !canBeSuspended(n.GetKind()) {
			continue
		}
		g.take(n, true)
		if n.GetKind() != "HelmRelease" {
			continue
		}
		if _, remote, _ := unstructured.NestedMap(n.Object, "spec", "kubeConfig"); remote {
			continue // Helm's own Secrets are in the cluster of this kubeconfig
		}
		release := releaseOf(n)
		if moved[release] || moved[kube.Key{Namespace: release.Namespace}] {
			g.takeRelease(release, storageOf(n))
		} else {
			n.Anew = true
		}
	}
}

func canBeSuspended(kind string) bool {
	return slices.Contains([]string{"Kustomization", "HelmRelease", "GitRepository", "OCIRepository", "HelmRepository", "Bucket"}, kind)
}

// movedReleases returns the releases with at least one object that is handed over. It also returns the namespaces of the Clusters that are
// handed over, as keys without a name, because the releases in these namespaces make Clusters.
func (g *graph) movedReleases() map[kube.Key]bool {
	moved := map[kube.Key]bool{}
	for _, n := range g.nodes {
		if !n.taken || !n.kind.custom {
			continue
		}
		moved[madeBy(n)] = true
		if n.kind.GroupKind() == clusterGroupKind {
			moved[kube.Key{Namespace: n.GetNamespace()}] = true
		}
	}
	delete(moved, kube.Key{})
	return moved
}

// madeBy returns the name and namespace of the release that made an object.
func madeBy(n *node) kube.Key {
	a := n.GetAnnotations()
	return kube.Key{Namespace: a[releaseNamespace], Name: a[releaseName]}
}

// releaseOf returns the name and namespace of a HelmRelease's release in Helm.
func releaseOf(n *node) kube.Key {
	text := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(n.Object, fields...)
		return s
	}
	key := kube.Key{Namespace: text("spec", "targetNamespace"), Name: text("spec", "releaseName")}
	if key.Name == "" {
		key.Name = n.GetName()
		if key.Namespace != "" {
			key.Name = key.Namespace + "-" + key.Name
		}
	}
	if key.Namespace == "" {
		key.Namespace = n.GetNamespace()
	}
	return key
}

// storageOf returns the namespace in which Helm keeps the records of a HelmRelease's releases.
func storageOf(n *node) string {
	namespace, _, _ := unstructured.NestedString(n.Object, "spec", "storageNamespace")
	return cmp.Or(namespace, n.GetNamespace())
}

// takeOwnReleases takes Helm's records of the releases that made the Clusters. It leaves the HelmReleases, because the new owner of the
// Clusters gets them from the fleet repo.
func (g *graph) takeOwnReleases() {
	storage := map[kube.Key]string{}
	for _, n := range g.nodes {
		if n.taken && n.selected && n.kind.GroupKind() == clusterGroupKind {
			release := madeBy(n)
			storage[release] = release.Namespace
		}
	}
	delete(storage, kube.Key{})
	for _, n := range g.nodes {
		if _, ours := storage[releaseOf(n)]; ours && OfFlux(n.kind.Group) && n.GetKind() == "HelmRelease" {
			storage[releaseOf(n)] = storageOf(n)
		}
	}
	for release, namespace := range storage {
		g.takeRelease(release, namespace)
	}
}

// takeRelease takes Helm's own Secrets of a release, and the ConfigMaps and Secrets that the release has made.
func (g *graph) takeRelease(release kube.Key, storage string) {
	for _, n := range g.nodes {
		if n.kind.custom {
			continue
		}
		kind, _, _ := unstructured.NestedString(n.Object, "type")
		history := kind == historyType && n.GetNamespace() == storage && n.GetLabels()["name"] == release.Name
		if history || madeBy(n) == release {
			g.take(n, true)
		}
	}
}
