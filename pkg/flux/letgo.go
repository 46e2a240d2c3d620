package flux

import (
	"cmp"
	"context"

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

// LetGo keeps Flux off what it does for a workload cluster: the HelmRelease that makes it, and what works on the cluster itself through the Secret kubeconfig.
// Each is suspended, and marked so that what applied it does not undo that. What is suspended is not undone when it is deleted. It returns what there was.
func (s *System) LetGo(ctx context.Context, release, kubeconfig kube.Key) ([]kube.Ref, error) {
	return s.toggle(ctx, "suspend", workers(), kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		if ref := kube.RefOf(obj); !worksOn(obj, kubeconfig) && (ref.GroupVersionKind != helmReleaseKind || ref.Key != release) {
			return nil
		}
		before, is := obj.GetAnnotations()[letGoAnnotation]
		if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); !is && suspended {
			before = wasSuspended
		}
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{reconcileAnnotation: "disabled", letGoAnnotation: cmp.Or(before, "true")}},
			"spec":     map[string]any{"suspend": true},
		}
	})
}

// TakeBack undoes LetGo for what it has marked in a namespace and for what works on the cluster of the Secret kubeconfig: Flux goes on with it as before.
func (s *System) TakeBack(ctx context.Context, namespace string, kubeconfig kube.Key) error {
	_, err := s.toggle(ctx, "resume", workers(), kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		before, is := obj.GetAnnotations()[letGoAnnotation]
		if !is || obj.GetNamespace() != namespace && !worksOn(obj, kubeconfig) {
			return nil
		}
		change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{reconcileAnnotation: nil, letGoAnnotation: nil}}}
		if before != wasSuspended {
			change["spec"] = map[string]any{"suspend": nil}
		}
		return change
	})
	return err
}

// workers are the kinds that change clusters.
func workers() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kustomizationKind, helmReleaseKind}
}

// worksOn tells whether an object of Flux works on the cluster that a Secret leads to.
func worksOn(obj *unstructured.Unstructured, kubeconfig kube.Key) bool {
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "kubeConfig", "secretRef", "name")
	return name != "" && kubeconfig == kube.Key{Namespace: obj.GetNamespace(), Name: name}
}
