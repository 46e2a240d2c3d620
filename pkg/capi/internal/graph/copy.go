package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// CopyOptions are the options of Members.Copy.
type CopyOptions struct {
	// ID is the ID of the hand-over. Each copy is marked with it. Copy completes copies that already have this mark.
	ID string
	// Hold adds Cluster API's pause annotation to each copy of a custom resource. It is for a target whose controllers cannot be stopped.
	Hold bool
	// Progress, if not nil, is called by several goroutines after each copied object.
	Progress func(done, total int)
}

// ErrTaken says that the target has an object of the same name that is not a copy of this hand-over.
var ErrTaken = errors.New("the target has another object of this name")

// copier is one run of Copy.
type copier struct {
	CopyOptions

	to    *kube.Client
	graph *Graph
	there map[refKey]*unstructured.Unstructured // the target's objects before the copy

	mu   sync.Mutex
	uids map[types.UID]types.UID // UIDs of the copies, by the UIDs of the originals
	done atomic.Int64
}

// Copy creates the graph's objects at the target, owners before the objects that they own and otherwise in parallel, each with its status.
// After an interruption at any point it can be run again, and completes the existing copies.
func (m *Members) Copy(ctx context.Context, graph *Graph, o CopyOptions) error {
	c := &copier{CopyOptions: o, to: m.kube, graph: graph, uids: map[types.UID]types.UID{}}
	var err error
	if c.there, err = m.objectsLike(ctx, graph); err != nil {
		return err
	}
	if err := c.namespaces(ctx); err != nil {
		return err
	}
	for start := 0; start < len(graph.Items); {
		end := start
		for end < len(graph.Items) && graph.Items[end].Level == graph.Items[start].Level {
			end++
		}
		if err := c.level(ctx, graph.Items[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// Conflicts returns the graph's objects whose names are taken at the target. taken are those that are not copies of the hand-over with this
// id. unlike are shared objects whose content differs at the target: with them, the handed-over Clusters would use for example another
// account or another class of machines.
func (m *Members) Conflicts(ctx context.Context, graph *Graph, id string) (taken, unlike []kube.Ref, err error) {
	there, err := m.objectsLike(ctx, graph)
	if err != nil {
		return nil, nil, err
	}
	for _, item := range graph.Items {
		have := there[keyOfItem(item)]
		if have == nil {
			continue
		}
		if !stays(have, item) && !isCopy(have, item, id) {
			taken = append(taken, item.Ref())
		}
		if item.Shared && !sameContent(have, item) {
			unlike = append(unlike, item.Ref())
		}
	}
	return taken, unlike, nil
}

// objectsLike returns all objects of the cluster of the kinds in graph.
func (m *Members) objectsLike(ctx context.Context, graph *Graph) (map[refKey]*unstructured.Unstructured, error) {
	var kinds []*heldKind
	seen := map[*heldKind]bool{}
	for _, item := range graph.Items {
		if !seen[item.kind] {
			seen[item.kind] = true
			kinds = append(kinds, item.kind)
		}
	}
	found, err := listKinds(ctx, m.kube, kinds)
	if err != nil {
		return nil, err
	}
	there := map[refKey]*unstructured.Unstructured{}
	for _, l := range found {
		for i := range l.objects {
			obj := &l.objects[i]
			there[refKey{l.kind.GroupKind(), kube.RefOf(obj).Key}] = obj
		}
	}
	return there, nil
}

func keyOfItem(item *Item) refKey { return refKey{item.kind.GroupKind(), item.Ref().Key} }

// stays tells whether the target keeps its own object for an item: the item is shared, or an earlier hand-over has brought a copy of it for
// another Cluster.
func stays(have *unstructured.Unstructured, item *Item) bool {
	if item.Shared {
		return true
	}
	a := have.GetAnnotations()
	_, stayed := a[StaysMark]
	return stayed && a[SourceMark] == string(item.GetUID()) && sameContent(have, item) // otherwise the newer content would be lost
}

// sameContent tells whether the content of two objects is equal, without metadata and status.
func sameContent(have *unstructured.Unstructured, item *Item) bool {
	for _, part := range []string{"spec", "data", "stringData", "binaryData", "type"} {
		if !sameValue(item.Object[part], have.Object[part]) {
			return false
		}
	}
	return true
}

// isCopy tells whether have is the copy of item that the hand-over with this id made.
func isCopy(have *unstructured.Unstructured, item *Item, id string) bool {
	a := have.GetAnnotations()
	return a[HandoverMark] == id && a[SourceMark] == string(item.GetUID())
}

// namespaces makes the namespaces that the copies need.
func (c *copier) namespaces(ctx context.Context) error {
	seen := map[string]bool{"": true}
	for _, item := range c.graph.Items {
		name := item.GetNamespace()
		if seen[name] {
			continue
		}
		seen[name] = true
		err := kube.Retry(ctx, func(ctx context.Context) error {
			return c.to.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// level copies items that do not own each other. If one fails, it tries the others. The error joins all errors.
func (c *copier) level(ctx context.Context, items []*Item) error {
	err := kube.Each(parallelism, items, func(item *Item) error {
		err := ctx.Err()
		if err == nil {
			err = c.one(ctx, item)
		}
		if done := int(c.done.Add(1)); c.Progress != nil && err == nil {
			c.Progress(done, len(c.graph.Items))
		}
		return err
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// one creates or completes the copy of one object.
func (c *copier) one(ctx context.Context, item *Item) error {
	have, err := c.create(ctx, item)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.uids[item.GetUID()] = have.GetUID()
	c.mu.Unlock()
	if !isCopy(have, item, c.ID) {
		return nil // the target keeps its own shared object
	}
	if item.hasStatus() {
		if err := c.status(ctx, item, have); err != nil {
			return err
		}
	}
	return c.fields(ctx, item, have)
}

// create creates the copy, or returns the existing one. Of an object that it has created, it returns no more than the metadata.
func (c *copier) create(ctx context.Context, item *Item) (*unstructured.Unstructured, error) {
	have := c.there[keyOfItem(item)]
	if have == nil {
		wanted := c.copyOf(item)
		var created *unstructured.Unstructured
		err := kube.Retry(ctx, func(ctx context.Context) (err error) {
			created, err = c.to.CreateBriefly(ctx, wanted)
			return err
		})
		if err == nil {
			return created, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create %s: %w", item.Ref(), err)
		}
		have = &unstructured.Unstructured{}
		have.SetGroupVersionKind(item.kind.GroupVersionKind)
		if err := kube.Retry(ctx, func(ctx context.Context) error { return c.to.Get(ctx, item.Ref().Key, have) }); err != nil {
			return nil, fmt.Errorf("get %s: %w", item.Ref(), err)
		}
	}
	if !stays(have, item) && !isCopy(have, item, c.ID) {
		return nil, diag.Wrap("copy "+item.Ref().String(), ErrTaken, "find out who uses that object, and delete it there if nobody needs it")
	}
	return have, nil
}

// copyOf returns the object to create for item. It has no fields that depend on the source's cluster, and the owners' UIDs of the target.
func (c *copier) copyOf(item *Item) *unstructured.Unstructured {
	obj := plainCopy(item)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[HandoverMark], annotations[SourceMark] = c.ID, string(item.GetUID())
	if item.Stays {
		annotations[StaysMark] = "true"
	}
	if item.GetDeletionTimestamp() != nil {
		annotations[DeletingMark] = "true"
	}
	if c.Hold && item.kind.custom {
		if _, already := annotations[clusterv1.PausedAnnotation]; !already {
			annotations[clusterv1.PausedAnnotation], annotations[HeldMark] = "true", "true"
		}
	}
	obj.SetAnnotations(annotations)
	c.mu.Lock()
	defer c.mu.Unlock()
	var owners []metav1.OwnerReference
	for _, o := range item.GetOwnerReferences() {
		if uid := c.uids[o.UID]; uid != "" {
			o.UID = uid
			owners = append(owners, o)
		}
	}
	obj.SetOwnerReferences(owners)
	return obj
}

// status writes the source's status to the copy.
func (c *copier) status(ctx context.Context, item *Item, have *unstructured.Unstructured) error {
	wanted := statusOf(item.Unstructured, have.GetGeneration())
	err := kube.Retry(ctx, func(ctx context.Context) error {
		if sameValue(have.Object["status"], wanted) {
			return nil
		}
		err := c.to.UpdateStatusBriefly(ctx, statusOnly(item, have, wanted))
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := c.to.Get(ctx, item.Ref().Key, have); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("it has changed in the meantime", 0) // try again with the current object
	})
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", item.Ref(), err)
	}
	return nil
}

// statusOnly returns the copy with this status, and without what the API server ignores in a write of a status: its spec and most of its
// metadata. It keeps all other fields, because the API server would take a missing one for a change of its managed fields.
func statusOnly(item *Item, have *unstructured.Unstructured, status any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: maps.Clone(item.Object)}
	delete(obj.Object, "spec")
	obj.Object["status"] = status
	obj.Object["metadata"] = map[string]any{
		"name": have.GetName(), "namespace": have.GetNamespace(), "uid": string(have.GetUID()), "resourceVersion": have.GetResourceVersion(),
	}
	return obj
}

// fields writes the managed fields of everybody who applies parts of the object to its copy. If fleetctl owned those parts too, nobody else
// could remove them. This needs its own write: with other changes, the API server adds these changes to the managed fields, and with a
// status, it ignores the managed fields.
func (c *copier) fields(ctx context.Context, item *Item, have *unstructured.Unstructured) error {
	if !applied(item.GetManagedFields()) || applied(have.GetManagedFields()) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": item.GetManagedFields()}})
	if err != nil {
		return err
	}
	err = kube.Retry(ctx, func(ctx context.Context) error {
		return c.to.Patch(ctx, named(have), client.RawPatch(types.MergePatchType, patch), unchecked)
	})
	if err != nil {
		return fmt.Errorf("write the managed fields of %s: %w", item.Ref(), err)
	}
	return nil
}

func applied(fields []metav1.ManagedFieldsEntry) bool {
	for _, f := range fields {
		if f.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}
