package flux

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	// letGoAnnotation marks what LetGo has suspended: it stays until its namespace goes, and undoes nothing then. Its value says how it was before.
	letGoAnnotation = "fleetctl.dev/let-go"
	wasSuspended    = "was-suspended"

	reconcileAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"
)

// MadeBy is the HelmRelease that has made an object, by the labels that helm-controller gives it; ok is false where none has.
func MadeBy(obj *unstructured.Unstructured) (ref kube.Ref, ok bool) {
	labels := obj.GetLabels()
	ref = kube.Ref{
		GroupVersionKind: helmReleaseKind,
		Key:              kube.Key{Namespace: labels["helm.toolkit.fluxcd.io/namespace"], Name: labels["helm.toolkit.fluxcd.io/name"]},
	}
	return ref, ref.Namespace != "" && ref.Name != ""
}

// Applier is the Kustomization that has applied an object, by the labels that kustomize-controller gives it; ok is false where none has.
func Applier(obj *unstructured.Unstructured) (key kube.Key, ok bool) {
	labels := obj.GetLabels()
	key = kube.Key{Namespace: labels[appliedFrom], Name: labels[AppliedBy]}
	return key, key.Namespace != "" && key.Name != ""
}

// LetGo keeps Flux off what it does for a workload cluster: the HelmRelease that makes it, and what works on the cluster itself through the Secret kubeconfig.
// Each is suspended, and marked so that what applied it does not undo that. What is suspended is not undone when it is deleted. It returns what there was.
func (s *System) LetGo(ctx context.Context, release kube.Ref, kubeconfig kube.Key) ([]kube.Ref, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	var found []kube.Ref
	var errs []error
	for _, gvk := range []schema.GroupVersionKind{kustomizationKind, helmReleaseKind} {
		for _, ref := range w.refs(gvk) {
			obj := w[gvk][ref.Key]
			if !worksOn(obj, kubeconfig) && ref != release {
				continue
			}
			found = append(found, ref)
			before, is := obj.GetAnnotations()[letGoAnnotation]
			if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); !is && suspended {
				before = wasSuspended
			}
			err := s.patch(ctx, ref, map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{reconcileAnnotation: "disabled", letGoAnnotation: cmp.Or(before, "true")}},
				"spec":     map[string]any{"suspend": true},
			})
			if err != nil && !gone(err) {
				errs = append(errs, fmt.Errorf("suspend %s: %w", ref, err))
			}
		}
	}
	return found, errors.Join(errs...)
}

// TakeBack undoes LetGo for what it has marked in a namespace and for what works on the cluster of the Secret kubeconfig: Flux goes on with it as before.
func (s *System) TakeBack(ctx context.Context, namespace string, kubeconfig kube.Key) error {
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, gvk := range []schema.GroupVersionKind{kustomizationKind, helmReleaseKind} {
		for _, ref := range w.refs(gvk) {
			obj := w[gvk][ref.Key]
			before, is := obj.GetAnnotations()[letGoAnnotation]
			if !is || ref.Namespace != namespace && !worksOn(obj, kubeconfig) {
				continue
			}
			change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{reconcileAnnotation: nil, letGoAnnotation: nil}}}
			if before != wasSuspended {
				change["spec"] = map[string]any{"suspend": nil}
			}
			if err := s.patch(ctx, ref, change); err != nil && !gone(err) {
				errs = append(errs, fmt.Errorf("resume %s: %w", ref, err))
			}
		}
	}
	return errors.Join(errs...)
}

// worksOn tells whether an object of Flux works on the cluster that a Secret leads to.
func worksOn(obj *unstructured.Unstructured, kubeconfig kube.Key) bool {
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "kubeConfig", "secretRef", "name")
	return name != "" && kubeconfig == kube.Key{Namespace: obj.GetNamespace(), Name: name}
}
