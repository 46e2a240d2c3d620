package graph

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// link records the owner of each object: by owner reference, or else by Cluster API's own rules.
func (g *graph) link() {
	for _, n := range g.nodes {
		for _, o := range n.GetOwnerReferences() {
			if owner := g.byUID[o.UID]; owner != nil {
				owner.owned = append(owner.owned, n)
			}
		}
		if claim := g.claimOf(n); claim != nil {
			claim.owned = append(claim.owned, n)
		}
		if cluster := g.clusterOf(n); cluster != nil && cluster != n {
			cluster.owned = append(cluster.owned, n)
		}
	}
}

// clusterOf returns the Cluster to which n belongs by name: by its label, by spec.clusterName, or as one of the Cluster's Secrets.
func (g *graph) clusterOf(n *node) *node {
	if OfFlux(n.kind.Group) {
		return nil // takeFlux selects the objects of Flux
	}
	name := n.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" && n.kind.custom {
		name, _, _ = unstructured.NestedString(n.Object, "spec", "clusterName")
	}
	if name == "" && n.kind.GroupVersionKind == secretKind && len(n.GetOwnerReferences()) == 0 {
		name, _, _ = secret.ParseSecretName(n.GetName()) // "" for another name
	}
	if name == "" {
		return nil
	}
	return g.byRef[refKey{clusterGroupKind, kube.Key{Namespace: n.GetNamespace(), Name: name}}]
}

// claimOf returns the claim that owns an address, even if a restored address has no owner reference.
func (g *graph) claimOf(n *node) *node {
	if n.kind.Group != ipamGroup || n.GetKind() != "IPAddress" {
		return nil
	}
	name, _, _ := unstructured.NestedString(n.Object, "spec", "claimRef", "name")
	return g.byRef[refKey{schema.GroupKind{Group: ipamGroup, Kind: "IPAddressClaim"}, kube.Key{Namespace: n.GetNamespace(), Name: name}}]
}

// classOf returns the ClusterClass of a Cluster.
func (g *graph) classOf(n *node) *node {
	if n.kind.GroupKind() != clusterGroupKind {
		return nil
	}
	name, _, _ := unstructured.NestedString(n.Object, "spec", "topology", "classRef", "name")
	namespace, _, _ := unstructured.NestedString(n.Object, "spec", "topology", "classRef", "namespace")
	return g.byRef[refKey{classGroupKind, kube.Key{Namespace: cmp.Or(namespace, n.GetNamespace()), Name: name}}]
}
