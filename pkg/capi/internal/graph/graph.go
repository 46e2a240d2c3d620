package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
	// Shared: it is named by what is handed over, or cluster-wide. Where the target has one already, that one stays as it is.
	Shared bool
	// Stays at the source: others there use it, too.
	Stays bool
	// Anew: a HelmRelease whose objects are this management cluster's own, and do not travel. Its copy is without what Helm and Flux know of
	// it: the target's Flux has to install it, and would take it for installed.
	Anew bool
	// Level is 0 for what nothing in the graph owns, and one more than the highest level of its owners for all else.
	Level int
}

// Ref identifies the item.
func (i *Item) Ref() kube.Ref { return kube.RefOf(i.Unstructured) }

// Graph is all that belongs to the Clusters that are handed over.
type Graph struct {
	// Items to copy, owners before what they own.
	Items []*Item
	// Leave are objects that the target makes for itself, and that have to go from the source all the same.
	Leave []*unstructured.Unstructured
	// Strays are custom resources beside the Clusters that belong to none of them, as far as can be told, and to nothing of Flux's.
	Strays []kube.Ref
	// Missing says what cannot travel, each with its reason.
	Missing []string
	// Groups are the API groups of the items, without the API server's own.
	Groups []string

	seen []*node // all that the graph was found among
}

// Among are the objects with these UIDs that the graph was found among, its own or not, by kind and name.
func (g *Graph) Among(uids map[types.UID]bool) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, n := range g.seen {
		if uids[n.GetUID()] {
			objects = append(objects, n.Unstructured)
		}
	}
	return byRef(objects)
}

// GraphOptions of Members.Graph.
type GraphOptions struct {
	// Clusters whose graph it is; empty: all, and what is to be moved without belonging to one.
	Clusters []kube.Key
	// WithFlux includes the Flux objects of this management cluster, and Flux's own record of the objects that it has applied.
	WithFlux bool
}

// Counts are the items by kind.
func (g *Graph) Counts() map[string]int {
	counts := map[string]int{}
	for _, item := range g.Items {
		counts[item.GetKind()]++
	}
	return counts
}

// OneOfEach is a copy of one item of each kind that a CRD serves, under another name: to try how the API server takes that kind.
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

// OfKind are the items of one kind of Cluster API's core group, as Cluster and ClusterClass.
func (g *Graph) OfKind(kind string) []*Item {
	var found []*Item
	for _, item := range g.Items {
		if item.GetKind() == kind && item.kind.Group == clusterGroupKind.Group {
			found = append(found, item)
		}
	}
	return found
}

// node is an object while it is found out whether it belongs to the graph.
type node struct {
	Item

	owned    []*node // by owner references, and by what stands for one
	taken    bool
	selected bool // reached from a Cluster that is handed over, on the way down
}

// graph is what a management cluster holds.
type graph struct {
	nodes  []*node
	byUID  map[types.UID]*node
	byRef  map[refKey]*node
	byKind map[string][]*node // for references that leave the API group out
	all    bool
}

type refKey struct {
	schema.GroupKind
	kube.Key
}

// Graph finds all that belongs to the Clusters, in all namespaces.
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
	g := &graph{byUID: map[types.UID]*node{}, byRef: map[refKey]*node{}, byKind: map[string][]*node{}, all: all}
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

// takeRoots takes the Clusters that are handed over, or all objects that have to move, with everything that they own.
func (g *graph) takeRoots(clusters []kube.Key) {
	for _, n := range g.nodes {
		switch {
		case g.all && (n.kind.root || hasLabel(n, clusterctlv1.ClusterctlMoveLabel) || hasLabel(n, clusterctlv1.ClusterctlMoveHierarchyLabel)):
			g.take(n, true)
		case n.kind.GroupKind() == clusterGroupKind && slices.Contains(clusters, n.key().Key):
			g.take(n, true)
		}
	}
}

func hasLabel(obj metav1.Object, name string) bool {
	_, ok := obj.GetLabels()[name]
	return ok
}

// take takes n and all that it owns. down is false for what is only used: others may use it, too.
func (g *graph) take(n *node, down bool) {
	if n.taken && (n.selected || !down) {
		return
	}
	n.taken, n.selected = true, n.selected || down
	for _, member := range n.owned {
		if member.kind.GroupKind() == clusterGroupKind && !member.selected && !g.all {
			continue // of a ClusterClass that several use: the others stay
		}
		g.take(member, down)
	}
}

// result puts what was taken into order.
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
		n.Shared = n.GetNamespace() == "" || !n.selected
		n.Stays = n.Shared && !g.all
		if n.kind.custom {
			groups[n.kind.Group] = true
		}
		result.Items = append(result.Items, &n.Item)
		result.Missing = append(result.Missing, g.missing(n)...)
	}
	g.order(result)
	for group := range groups {
		result.Groups = append(result.Groups, group)
	}
	slices.Sort(result.Groups)
	slices.Sort(result.Missing)
	return result
}

// missing names the owners of n that are not handed over: its copy is without them.
func (g *graph) missing(n *node) []string {
	var missing []string
	for _, o := range n.GetOwnerReferences() {
		if owner := g.byUID[o.UID]; owner == nil || !owner.taken {
			missing = append(missing, fmt.Sprintf("%s is owned by %s %s, which is not handed over", n.Ref(), o.Kind, o.Name))
		}
	}
	return missing
}

// order gives each item its level, and sorts by it. Owners that own each other get one level.
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
