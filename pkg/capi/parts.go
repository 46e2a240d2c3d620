package capi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/fleetctl/fleetctl/pkg/capi/internal/graph"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Part is an object of a Cluster, with the parts that it owns.
type Part struct {
	*unstructured.Unstructured

	// Provider tells whether a provider defines the object's kind. Otherwise the kind is in Cluster API's core group.
	Provider bool
	Parts    []*Part
}

// Ref returns the reference of the part.
func (p *Part) Ref() kube.Ref { return kube.RefOf(p.Unstructured) }

// Walk calls visit for the part, with depth 0, and for all parts below it.
func (p *Part) Walk(visit func(p *Part, depth int)) { p.walk(visit, 0) }

func (p *Part) walk(visit func(*Part, int), depth int) {
	visit(p, depth)
	for _, inner := range p.Parts {
		inner.walk(visit, depth+1)
	}
}

// Parts returns a Cluster as a tree with all its objects in its namespace, of every kind that a CRD serves. root is nil if the Cluster does
// not exist. unread are the kinds that could not be read, for example because a conversion webhook does not answer.
func (m *Manager) Parts(ctx context.Context, cluster kube.Key) (root *Part, unread []kube.KindError, err error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(clusterKind)
	switch err := m.kube.Get(ctx, cluster, obj); {
	case kube.IsObjectAbsent(err):
		return nil, nil, nil
	case err != nil:
		if err := m.absent(ctx, err); err != nil {
			return nil, nil, fmt.Errorf("look at Cluster %s: %w", cluster, err)
		}
		return nil, nil, nil
	}
	kinds, err := m.kube.Kinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	kinds = slices.DeleteFunc(kinds, func(k kube.Kind) bool { return !k.Namespaced || !k.Custom || !mayBePart(k.Group) })
	objects, unread := m.kube.ListKinds(ctx, kinds, cluster.Namespace)
	return assemble(obj, objects), unread, nil
}

// mayBePart tells whether objects of an API group can belong to a Cluster.
func mayBePart(group string) bool {
	return !graph.OfFlux(group) && group != clusterctlv1.GroupVersion.Group && group != "cert-manager.io" && group != "acme.cert-manager.io"
}

// assemble returns the Cluster's objects as a tree, with each part below its owner.
func assemble(cluster *unstructured.Unstructured, objects []unstructured.Unstructured) *Part {
	root := &Part{Unstructured: cluster}
	byUID := map[types.UID]*Part{cluster.GetUID(): root}
	var all []*Part
	for i := range objects {
		obj := &objects[i]
		if obj.GetUID() == cluster.GetUID() {
			continue
		}
		p := &Part{Unstructured: obj, Provider: obj.GroupVersionKind().Group != clusterv1.GroupVersion.Group}
		byUID[obj.GetUID()] = p
		all = append(all, p)
	}
	owner := map[*Part]*Part{}
	for _, p := range all {
		if o := ownerOf(p, byUID); o != nil {
			owner[p] = o
		} else if belongsTo(p.Unstructured, cluster) {
			owner[p] = root
		}
	}
	for _, p := range all {
		switch {
		case leadsTo(p, root, owner):
			owner[p].Parts = append(owner[p].Parts, p)
		case belongsTo(p.Unstructured, cluster): // its owners form a cycle
			root.Parts = append(root.Parts, p)
			owner[p] = root
		}
	}
	sortParts(root, cluster)
	return root
}

// ownerOf returns the owner below which p is shown: a Machine, or else the controller, or else another owner.
func ownerOf(p *Part, byUID map[types.UID]*Part) *Part {
	var best *Part
	rank := -1
	for _, ref := range p.GetOwnerReferences() {
		o := byUID[ref.UID]
		if o == nil || o == p {
			continue
		}
		r := 0
		if ref.Controller != nil && *ref.Controller {
			r = 1
		}
		if ref.Kind == "Machine" {
			r = 2
		}
		if r > rank {
			best, rank = o, r
		}
	}
	return best
}

// belongsTo tells whether an object without an owner belongs to the Cluster: by its label, by a field, or because the Cluster names it.
func belongsTo(obj, cluster *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterName")
	return obj.GetLabels()[clusterv1.ClusterNameLabel] == cluster.GetName() || name == cluster.GetName() || named(obj, cluster) != ""
}

// named returns the field of the Cluster's spec that names an object, or "".
func named(obj, cluster *unstructured.Unstructured) string {
	for _, field := range []string{"infrastructureRef", "controlPlaneRef"} {
		ref, _, _ := unstructured.NestedMap(cluster.Object, "spec", field)
		if ref["kind"] == obj.GetKind() && ref["name"] == obj.GetName() {
			return field
		}
	}
	return ""
}

// leadsTo tells whether the owners of p lead to root without a cycle.
func leadsTo(p, root *Part, owner map[*Part]*Part) bool {
	seen := map[*Part]bool{}
	for p != root {
		if p == nil || seen[p] {
			return false
		}
		seen[p] = true
		p = owner[p]
	}
	return true
}

// sortParts sorts the parts in the order in which they are made: the infrastructure, the control plane, the machines.
func sortParts(p *Part, cluster *unstructured.Unstructured) {
	rank := func(p *Part) int {
		switch named(p.Unstructured, cluster) {
		case "infrastructureRef":
			return 0
		case "controlPlaneRef":
			return 1
		}
		kinds := []string{"MachineDeployment", "MachinePool", "MachineSet", "Machine"}
		if i := slices.Index(kinds, p.GetKind()); i >= 0 {
			return 2 + i
		}
		return 2 + len(kinds)
	}
	slices.SortStableFunc(p.Parts, func(a, b *Part) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	for _, inner := range p.Parts {
		sortParts(inner, cluster)
	}
}
