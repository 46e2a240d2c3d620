package flux

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// keptOffAnnotation marks what KeepOff has suspended.
const keptOffAnnotation = "fleetctl.dev/kept-off"

// KeepOff suspends what works on a workload cluster through the Secret kubeconfig. Nothing is undone by that. What is suspended already stays as it is, also
// when BackOn undoes this. It returns what it suspended.
func (s *System) KeepOff(ctx context.Context, kubeconfig kube.Key) ([]kube.Ref, error) {
	return s.toggle(ctx, "suspend", workers(), kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended || !worksOn(obj, kubeconfig) {
			return nil
		}
		return keptOff(true, "true")
	})
}

// BackOn lets Flux go on with what KeepOff has suspended, and returns it.
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
