package graph

import (
	"cmp"
	"fmt"
	"slices"

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

// poolOf returns the pool that a claim gets its address from, or nil if n is no claim. A pool may be for all namespaces.
func (g *graph) poolOf(claim *node) *node {
	field := func(of, name string) string {
		value, _, _ := unstructured.NestedString(claim.Object, "spec", of, name)
		return value
	}
	var kind schema.GroupKind
	var name string
	switch (schema.GroupKind{Group: claim.kind.Group, Kind: claim.GetKind()}) {
	case schema.GroupKind{Group: ipamGroup, Kind: "IPAddressClaim"}:
		kind = schema.GroupKind{Group: cmp.Or(field("poolRef", "apiGroup"), ipamGroup), Kind: field("poolRef", "kind")}
		name = field("poolRef", "name")
	case schema.GroupKind{Group: metal3Addresses, Kind: "IPClaim"}:
		kind, name = schema.GroupKind{Group: metal3Addresses, Kind: "IPPool"}, field("pool", "name")
	default:
		return nil
	}
	return cmp.Or(
		g.byRef[refKey{kind, kube.Key{Namespace: claim.GetNamespace(), Name: name}}],
		g.byRef[refKey{kind, kube.Key{Name: name}}],
	)
}

// dividedPools describes the pools of addresses that go, and that Clusters which stay use too. Each side has a copy that knows the
// addresses of now, and neither knows what the other one gives out from then on.
func (g *graph) dividedPools() []string {
	var divided []string
	for _, n := range g.nodes {
		if pool := g.poolOf(n); pool != nil && pool.taken && !n.selected {
			divided = append(divided, fmt.Sprintf("clusters that stay use %s too, so both sides may give out the same address; "+
				"give one of them a pool of its own, with other addresses", pool.Ref()))
		}
	}
	slices.Sort(divided)
	return slices.Compact(divided)
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
