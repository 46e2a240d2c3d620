package flux

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// keptOffAnnotation marks objects that KeepOff has suspended.
const keptOffAnnotation = "fleetctl.dev/kept-off"

// KeepOff suspends the objects that work on a workload cluster through the Secret kubeconfig. Suspending does not delete anything.
// KeepOff leaves suspended objects as they are, and BackOn does not resume them. It returns the objects that it suspended.
func (s *System) KeepOff(ctx context.Context, kubeconfig kube.Key) ([]kube.Ref, error) {
	return s.toggle(ctx, "suspend", workers(), kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended || !worksOn(obj, kubeconfig) {
			return nil
		}
		return keptOff(true, "true")
	})
}

// BackOn resumes the objects that KeepOff has suspended, and returns them.
func (s *System) BackOn(ctx context.Context, kubeconfig kube.Key) ([]kube.Ref, error) {
	return s.toggle(ctx, "resume", workers(), kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		if _, is := obj.GetAnnotations()[keptOffAnnotation]; !is || !worksOn(obj, kubeconfig) {
			return nil
		}
		return keptOff(nil, nil)
	})
}

func keptOff(suspend, mark any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{keptOffAnnotation: mark}},
		"spec":     map[string]any{"suspend": suspend},
	}
}
