package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Copies returns the metadata of the objects in the cluster that the hand-over with this id has made.
func (m *Members) Copies(ctx context.Context, id string) ([]*unstructured.Unstructured, error) {
	held, err := m.heldKinds(ctx)
	if err != nil {
		return nil, err
	}
	kinds := make([]schema.GroupVersionKind, 0, len(held))
	for _, k := range held {
		kinds = append(kinds, k.GroupVersionKind)
	}
	return m.metadataThat(ctx, kinds, func(obj metav1.Object) bool { return obj.GetAnnotations()[HandoverMark] == id })
}

// Mark marks each of the graph's objects that does not stay at the source with the id of the hand-over that removes it.
func (m *Members) Mark(ctx context.Context, graph *Graph, id string) error {
	var objects []*unstructured.Unstructured
	for _, item := range graph.Items {
		if !item.Stays {
			objects = append(objects, item.Unstructured)
		}
	}
	_, err := m.patchEach(ctx, "mark", objects, func(obj *unstructured.Unstructured) map[string]any {
		if obj.GetAnnotations()[HandoverMark] == id {
			return nil
		}
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{HandoverMark: id}}}
	})
	return err
}

// Remove deletes objects together with their finalizers, so that no controller acts on the deletion: the resources in the clouds stay. Use
// it only for fenced objects. It removes an owned object before its owner, so that an interrupted run leaves no object without its owner.
// It does not remove a new object with the same name and another UID.
func (m *Members) Remove(ctx context.Context, objects []*unstructured.Unstructured, progress func(done, total int)) error {
	var done atomic.Int64
	for _, level := range ownedFirst(objects) {
		err := kube.Each(parallelism, removals(level), func(r removal) error {
			err := ctx.Err()
			gone := 0
			if err == nil {
				gone, err = m.remove(ctx, r)
			}
			if n := int(done.Add(int64(gone))); progress != nil && err == nil && gone > 0 {
				progress(n, len(objects))
			}
			return err
		})
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ownedFirst sorts objects into levels. The owners of an object are in later levels.
func ownedFirst(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	byUID := map[types.UID]*unstructured.Unstructured{}
	for _, obj := range objects {
		byUID[obj.GetUID()] = obj
	}
	depths := map[types.UID]int{}
	var depth func(obj *unstructured.Unstructured, below int) int
	depth = func(obj *unstructured.Unstructured, below int) int {
		if known, ok := depths[obj.GetUID()]; ok {
			return known
		}
		deepest := 0
		for _, o := range obj.GetOwnerReferences() {
			if owner := byUID[o.UID]; owner != nil && below < len(objects) { // owners may form a cycle
				deepest = max(deepest, depth(owner, below+1)+1)
			}
		}
		depths[obj.GetUID()] = deepest
		return deepest
	}
	var levels [][]*unstructured.Unstructured
	for _, obj := range objects {
		d := depth(obj, 0)
		for len(levels) <= d {
			levels = append(levels, nil)
		}
		levels[d] = append(levels[d], obj)
	}
	slices.Reverse(levels)
	return levels
}

func (m *Members) removeOne(ctx context.Context, obj *unstructured.Unstructured) error {
	if len(obj.GetFinalizers()) == 0 {
		// There are no finalizers to remove first. But a webhook may require the annotation that explains the deletion.
		err := m.deleteAs(ctx, obj, obj.GetResourceVersion())
		if !errors.Is(err, errChanged) && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return err
		}
	}
	err := m.letGo(ctx, obj, nil)
	if errors.Is(err, errAnother) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.deleteAs(ctx, obj, "")
}

// letGo removes the finalizers of an object before its deletion, and adds labels. The error is errAnother if the object no longer exists.
func (m *Members) letGo(ctx context.Context, obj *unstructured.Unstructured, labels map[string]string) error {
	patch, err := release(obj, labels)
	if err != nil {
		return err
	}
	err = kube.Retry(ctx, func(ctx context.Context) error {
		return m.orAnother(ctx, obj, m.kube.Patch(ctx, named(obj), patch, unchecked))
	})
	if err != nil {
		return fmt.Errorf("release %s: %w", kube.RefOf(obj), err)
	}
	return nil
}

// release returns the patch that removes the finalizers of an object, and adds labels.
func release(obj *unstructured.Unstructured, labels map[string]string) (client.Patch, error) {
	metadata := map[string]any{
		"uid":         string(obj.GetUID()), // refused where it is another one by now
		"annotations": map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""}, "finalizers": nil,
		// This clears the managed fields. The API server would otherwise work out whose fields the write changes.
		"managedFields": []any{map[string]any{}},
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	return client.RawPatch(types.MergePatchType, patch), err
}

// unchecked is for writes of objects that an API server has stored before. It would search them for unknown fields, and warn of these.
const unchecked = client.FieldValidation(metav1.FieldValidationIgnore)

// named returns the kind and name of an object, for a write that changes some of it. The API server answers with no more than the metadata.
func named(obj *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	name := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	name.SetGroupVersionKind(obj.GroupVersionKind())
	return name
}

// deleteAs deletes the object. With a version it returns errChanged if the object has changed since it was listed, because it may have a
// finalizer now. An object that no longer exists is no error.
func (m *Members) deleteAs(ctx context.Context, obj *unstructured.Unstructured, version string) error {
	uid := obj.GetUID()
	as := client.Preconditions{UID: &uid}
	if version != "" {
		as.ResourceVersion = &version
	}
	err := kube.Retry(ctx, func(ctx context.Context) error {
		err := m.kube.WithWatch.Delete(ctx, named(obj), as, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if version != "" && apierrors.IsConflict(err) {
			return errChanged
		}
		return m.orAnother(ctx, obj, err)
	})
	if err == nil || errors.Is(err, errAnother) {
		return nil
	}
	return fmt.Errorf("delete %s: %w", kube.RefOf(obj), err)
}

// errChanged says that an object has changed since it was listed.
var errChanged = errors.New("it has changed")

// errAnother says that an object no longer exists, or that its name now belongs to another object.
var errAnother = errors.New("it is gone")

// orAnother returns errAnother if err is about a missing or another object. A conflict may also mean that somebody else writes to obj. It
// then returns an error that is retried.
func (m *Members) orAnother(ctx context.Context, obj *unstructured.Unstructured, err error) error {
	if kube.IsAbsent(err) {
		return errAnother
	}
	if !apierrors.IsConflict(err) {
		return err
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(obj.GroupVersionKind())
	switch readErr := m.kube.Get(ctx, kube.RefOf(obj).Key, now); {
	case kube.IsAbsent(readErr), readErr == nil && now.GetUID() != obj.GetUID():
		return errAnother
	case readErr != nil:
		return readErr
	}
	return apierrors.NewTimeoutError("somebody else writes to it", 0) // try again
}
