package graph

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// trialID is the mark of objects that are created in a dry run only.
const trialID = "dry-run"

// Arriving returns the graph's items of the kinds for which of returns true that this management cluster does not have yet.
func (m *Members) Arriving(ctx context.Context, graph *Graph, of func(schema.GroupKind) bool) ([]*Item, error) {
	some := &Graph{}
	for _, item := range graph.Items {
		if of(item.kind.GroupKind()) {
			some.Items = append(some.Items, item)
		}
	}
	there, err := m.objectsLike(ctx, some)
	if err != nil {
		return nil, err
	}
	var arriving []*Item
	for _, item := range some.Items {
		if there[keyOfItem(item)] == nil {
			arriving = append(arriving, item)
		}
	}
	return arriving, nil
}

// Kinds returns one item of each kind.
func (g *Graph) Kinds() []*Item {
	var kinds []*Item
	seen := map[*heldKind]bool{}
	for _, item := range g.Items {
		if !seen[item.kind] {
			seen[item.kind] = true
			kinds = append(kinds, item)
		}
	}
	return kinds
}

// Trial returns the object that Copy would create for an item, for a dry run. It has no owners, because their copies do not exist yet.
func (i *Item) Trial(hold bool) *unstructured.Unstructured {
	c := &copier{CopyOptions: CopyOptions{ID: trialID, Hold: hold}}
	return c.copyOf(i)
}

// Altered returns the first field of the item that a dry run with its Trial has changed or removed, or "" if there is none. It ignores new
// fields, as Differences does.
func (i *Item) Altered(got *unstructured.Unstructured) string {
	wanted, have := plainCopy(i), plainCopy(&Item{Unstructured: got, kind: i.kind})
	for _, obj := range []*unstructured.Unstructured{wanted, have} {
		unstructured.RemoveNestedField(obj.Object, "metadata", "ownerReferences")
	}
	return lacking(wanted.Object, have.Object, "")
}
