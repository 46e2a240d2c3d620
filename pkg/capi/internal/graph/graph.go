package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Item is an object that is handed over.
type Item struct {
	*unstructured.Unstructured

	kind *heldKind
	// Shared means that the item is cluster-scoped, that handed-over objects only name it, or that a Cluster owns it too that is not handed
	// over. If the target has such an object, the target's stays.
	Shared bool
	// Stays means that the source keeps the item, because other objects there use it too.
	Stays bool
	// Anew means that the item is a HelmRelease whose objects belong to this management cluster and are not handed over. Its copy has no
	// status and no records of Helm, because the target's Flux must install it and would otherwise take it for installed.
	Anew bool
	// Level is 0 for items without an owner in the graph. Otherwise it is one more than the highest level of the owners.
	Level int
}

// Ref returns the reference of the item.
func (i *Item) Ref() kube.Ref { return kube.RefOf(i.Unstructured) }

// Graph has all objects that belong to the Clusters of a hand-over.
type Graph struct {
	// Items are the objects to copy, owners before the objects that they own.
	Items []*Item
	// Leave are objects that are removed from the source but not copied, because the target makes them again.
	Leave []*unstructured.Unstructured
	// Strays are custom resources in the namespaces of Clusters that seem to belong to no Cluster and are not Flux's.
	Strays []kube.Ref
	// Missing describes what cannot be handed over, with the reason.
	Missing []string
	// Groups are the API groups of the items, without the built-in groups.
	Groups []string

	seen []*node // all objects of the management cluster that were read
}

// Among returns the objects with these UIDs among all objects that were read, in the graph or not, sorted by kind and name.
func (g *Graph) Among(uids map[types.UID]bool) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, n := range g.seen {
		if uids[n.GetUID()] {
			objects = append(objects, n.Unstructured)
		}
	}
	return byRef(objects)
}

// GraphOptions are the options of Members.Graph.
type GraphOptions struct {
	// Clusters are the Clusters to hand over. Empty means all, and all objects that clusterctl would move without a Cluster.
	Clusters []kube.Key
	// WithFlux includes the Flux objects of this management cluster, and Flux's own record of the objects that it has applied.
	WithFlux bool
}

// Counts returns the number of items by kind.
func (g *Graph) Counts() map[string]int {
	counts := map[string]int{}
	for _, item := range g.Items {
		counts[item.GetKind()]++
	}
	return counts
}

// ActedOn returns a function that tells whether the provider with this label may act on an item. A provider may act on every item whose CRD
// does not say which provider has brought it.
func (g *Graph) ActedOn() func(label string) bool {
	labels, unknown := map[string]bool{}, false
	for _, item := range g.Items {
		if item.kind.provider {
			labels[item.kind.label] = true
			unknown = unknown || item.kind.label == ""
		}
	}
	return func(label string) bool { return unknown || labels[label] }
}

// OneOfEach returns a copy of one item of each kind with a CRD, under another name, to test whether the API server accepts the kind.
func (g *Graph) OneOfEach(namespace, name string) []*unstructured.Unstructured {
	var probes []*unstructured.Unstructured
	seen := map[*heldKind]bool{}
	for _, item := range g.Items {
		if !item.kind.custom || seen[item.kind] {
			continue
		}
		seen[item.kind] = true
		probe := plainCopy(item)
		probe.SetName(name)
		probe.SetOwnerReferences(nil)
		if item.GetNamespace() != "" {
			probe.SetNamespace(namespace)
		}
		probes = append(probes, probe)
	}
	return probes
}

// OfKind returns the items of one kind of Cluster API's core group, such as Cluster.
func (g *Graph) OfKind(kind string) []*Item {
	var found []*Item
	for _, item := range g.Items {
		if item.GetKind() == kind && item.kind.Group == clusterGroupKind.Group {
			found = append(found, item)
		}
	}
	return found
}

// node is an object during the search for the graph's objects.
type node struct {
	Item

	owned    []*node // by owner reference, or by another rule of link
	taken    bool
	selected bool // a handed-over Cluster owns it, directly or indirectly
}

// graph has all objects of a management cluster.
type graph struct {
	nodes  []*node
	byUID  map[types.UID]*node
	byRef  map[refKey]*node
	byKind map[string][]*node // for references without an API group
	all    bool
	others map[*node]bool // what the Clusters own that are not handed over, directly or indirectly
}

type refKey struct {
	schema.GroupKind
	kube.Key
}

// Graph returns all objects that belong to the Clusters, in all namespaces.
func (m *Members) Graph(ctx context.Context, o GraphOptions) (*Graph, error) {
	kinds, err := m.heldKinds(ctx)
	if err != nil {
		return nil, err
	}
	found, err := listKinds(ctx, m.kube, kinds)
	if err != nil {
		return nil, err
	}
	g := newGraph(found, len(o.Clusters) == 0)
	g.link()
	g.takeRoots(o.Clusters)
	if o.WithFlux {
		g.takeFlux()
	}
	if !g.all {
		g.takeOwnReleases()
	}
	g.takeReferences()
	return g.result(o), nil
}

func newGraph(found []listed, all bool) *graph {
	g := &graph{
		byUID: map[types.UID]*node{}, byRef: map[refKey]*node{}, byKind: map[string][]*node{}, all: all, others: map[*node]bool{},
	}
	for _, l := range found {
		for i := range l.objects {
			n := &node{Item: Item{Unstructured: &l.objects[i], kind: l.kind}}
			g.nodes = append(g.nodes, n)
			g.byUID[n.GetUID()] = n
			g.byRef[n.key()] = n
			g.byKind[n.GetKind()] = append(g.byKind[n.GetKind()], n)
		}
	}
	return g
}

func (n *node) key() refKey {
	return refKey{n.kind.GroupKind(), kube.Key{Namespace: n.GetNamespace(), Name: n.GetName()}}
}

// takeRoots takes the Clusters to hand over, or all objects to move, with everything that they own.
func (g *graph) takeRoots(clusters []kube.Key) {
	for _, n := range g.nodes {
		switch {
		case g.all && (n.kind.root || hasLabel(n, clusterctlv1.ClusterctlMoveLabel) || hasLabel(n, clusterctlv1.ClusterctlMoveHierarchyLabel)):
			g.take(n, true)
		case n.kind.GroupKind() == clusterGroupKind && slices.Contains(clusters, n.key().Key):
			g.take(n, true)
		}
	}
	if g.all {
		return
	}
	for _, n := range g.nodes {
		if n.kind.GroupKind() == clusterGroupKind && !n.selected {
			g.leave(n)
		}
	}
}

// leave notes in others what a Cluster owns that is not handed over. Below an object that Clusters of both sides own is also what only the
// ones that go use, because they own it as well.
func (g *graph) leave(owner *node) {
	for _, member := range owner.owned {
		if g.others[member] || member.kind.GroupKind() == clusterGroupKind || owner.selected && g.ownedBeside(member) {
			continue
		}
		g.others[member] = true
		g.leave(member)
	}
}

// ownedBeside tells whether an object that goes, and that no Cluster which stays owns, is an owner of n.
func (g *graph) ownedBeside(n *node) bool {
	return slices.ContainsFunc(n.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		owner := g.byUID[o.UID]
		return owner != nil && owner.selected && !g.others[owner]
	})
}

// belongsToOthers tells whether only Clusters that are not handed over own n.
func (g *graph) belongsToOthers(n *node) bool { return g.others[n] && !n.selected }

func hasLabel(obj metav1.Object, name string) bool {
	_, ok := obj.GetLabels()[name]
	return ok
}

// take takes n and everything that n owns. down is false if n is only used, because other objects may use it too.
func (g *graph) take(n *node, down bool) {
	if n.taken && (n.selected || !down) {
		return
	}
	n.taken, n.selected = true, n.selected || down
	for _, member := range n.owned {
		if member.kind.GroupKind() == clusterGroupKind && !member.selected && !g.all {
			continue // another Cluster of the same ClusterClass stays
		}
		if g.belongsToOthers(member) && !strings.HasPrefix(member.kind.Group, "ipam.") { // Cluster API's, or Metal3's
			continue // the target's pool has to know which addresses are taken, but it has no use for another Cluster's binding, for example
		}
		g.take(member, down)
	}
}

// result returns the taken objects in order.
func (g *graph) result(o GraphOptions) *Graph {
	result := &Graph{seen: g.nodes}
	groups, beside := map[string]bool{}, map[string]bool{}
	for _, n := range g.nodes {
		if n.kind.GroupKind() == clusterGroupKind {
			beside[n.GetNamespace()] = true
		}
	}
	for _, n := range g.nodes {
		if !n.taken {
			switch {
			case o.WithFlux && OfFlux(n.kind.Group):
				result.Leave = append(result.Leave, n.Unstructured)
			case n.kind.custom && !OfFlux(n.kind.Group) && beside[n.GetNamespace()]:
				result.Strays = append(result.Strays, n.Ref())
			}
			continue
		}
		n.Shared = n.GetNamespace() == "" || !n.selected || g.others[n]
		n.Stays = n.Shared && !g.all
		if n.kind.custom {
			groups[n.kind.Group] = true
		}
		result.Items = append(result.Items, &n.Item)
		result.Missing = append(result.Missing, g.missing(n)...)
	}
	if !g.all {
		result.Missing = append(result.Missing, g.dividedPools()...)
	}
	g.order(result)
	for group := range groups {
		result.Groups = append(result.Groups, group)
	}
	slices.Sort(result.Groups)
	slices.Sort(result.Missing)
	return result
}

// missing describes the owners of n that are not handed over. The copy of n does not have these owners.
func (g *graph) missing(n *node) []string {
	var missing []string
	for _, o := range n.GetOwnerReferences() {
		if owner := g.byUID[o.UID]; owner == nil || !owner.taken {
			missing = append(missing, fmt.Sprintf("%s is owned by %s %s, which is not handed over", n.Ref(), o.Kind, o.Name))
		}
	}
	return missing
}

// order sets the level of each item, and sorts the items by level. Owners that own each other get the same level.
func (g *graph) order(result *Graph) {
	levels := map[types.UID]int{}
	var level func(n *node, above []types.UID) int
	level = func(n *node, above []types.UID) int {
		if known, ok := levels[n.GetUID()]; ok {
			return known
		}
		highest := 0
		for _, o := range n.GetOwnerReferences() {
			if owner := g.byUID[o.UID]; owner != nil && owner.taken && o.UID != n.GetUID() && !slices.Contains(above, o.UID) {
				highest = max(highest, level(owner, append(above, n.GetUID()))+1)
			}
		}
		levels[n.GetUID()] = highest
		return highest
	}
	for _, item := range result.Items {
		item.Level = level(g.byUID[item.GetUID()], nil)
	}
	slices.SortFunc(result.Items, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}
