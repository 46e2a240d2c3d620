package graph

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Where Helm notes on an object which release it is of.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
	// historyType is the type of the Secrets in which Helm keeps the history of a release.
	historyType = "helm.sh/release.v1"
)

// takeFlux takes the Flux objects with the state that Flux keeps, so that the target's Flux goes on where this one stopped. What cannot be
// suspended would be acted upon at the target before it has the work: Flux makes it again, from the fleet repo.
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
			continue // Helm's own Secrets are where it works
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

// movedReleases are the releases of which at least one object is handed over, and, without a name, the namespaces of the Clusters that are:
// their releases are what clusters are made of.
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

// madeBy is the release that an object is of, by name and namespace.
func madeBy(n *node) kube.Key {
	a := n.GetAnnotations()
	return kube.Key{Namespace: a[releaseNamespace], Name: a[releaseName]}
}

// releaseOf is the release that a HelmRelease makes, where Helm knows it.
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

// storageOf is the namespace in which Helm keeps the records of a HelmRelease's releases.
func storageOf(n *node) string {
	namespace, _, _ := unstructured.NestedString(n.Object, "spec", "storageNamespace")
	return cmp.Or(namespace, n.GetNamespace())
}

// takeOwnReleases takes what Helm knows of the releases that the Clusters are made by. What Flux is to do with them stays: who gets the
// Clusters has it from the fleet repo.
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

// takeRelease takes Helm's own Secrets of a release, and the ConfigMaps and Secrets that it has made.
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
