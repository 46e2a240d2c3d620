package graph

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TryRelease asks in dry runs for the changes that an object sees before it is removed: it is paused or suspended, and its finalizers are
// taken away. The error is the API server's. An object that has been replaced is no error.
func (m *Members) TryRelease(ctx context.Context, obj *unstructured.Unstructured) error {
	quiet := ""
	switch gk := obj.GroupVersionKind().GroupKind(); {
	case gk == clusterGroupKind:
		quiet = `{"spec":{"paused":true}}`
	case gk == classGroupKind:
		quiet = `{"metadata":{"annotations":{"` + clusterv1.PausedAnnotation + `":""}}}`
	case OfFlux(gk.Group) && canBeSuspended(gk.Kind):
		quiet = `{"spec":{"suspend":true}}`
	}
	if quiet != "" {
		patch := client.RawPatch(types.MergePatchType, []byte(quiet))
		if err := m.kube.Patch(ctx, named(obj), patch, unchecked, client.DryRunAll); err != nil {
			return err
		}
	}
	patch, err := release(obj, map[string]string{batchLabel: trialID})
	if err != nil {
		return err
	}
	return ignoreConflict(m.kube.Patch(ctx, named(obj), patch, unchecked, client.DryRunAll))
}

// TryDelete asks in a dry run for the deletion of an object. The error is the API server's. An object that has been replaced is no error.
func (m *Members) TryDelete(ctx context.Context, obj *unstructured.Unstructured) error {
	uid := obj.GetUID()
	return ignoreConflict(m.kube.WithWatch.Delete(ctx, named(obj), client.Preconditions{UID: &uid}, client.DryRunAll))
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
