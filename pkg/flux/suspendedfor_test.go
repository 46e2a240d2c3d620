package flux

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// What somebody has suspended of a cluster is told apart from what a transfer has suspended, and from what belongs to other clusters.
func TestSuspendedFor(t *testing.T) {
	w := world{kustomizationKind: {}, helmReleaseKind: {}}
	add := func(kind schema.GroupVersionKind, name, kubeconfig string, suspended bool, letGo string) kube.Ref {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": suspended}}}
		if kubeconfig != "" {
			set(t, obj, kubeconfig, "spec", "kubeConfig", "secretRef", "name")
		}
		obj.SetGroupVersionKind(kind)
		obj.SetNamespace("shop")
		obj.SetName(name)
		if letGo != "" {
			obj.SetAnnotations(map[string]string{letGoAnnotation: letGo})
		}
		ref := kube.RefOf(obj)
		w[kind][ref.Key] = obj
		return ref
	}
	want := []kube.Ref{
		add(kustomizationKind, "apps", "shop-kubeconfig", true, ""), add(helmReleaseKind, "cni", "shop-kubeconfig", true, wasSuspended),
		add(helmReleaseKind, "shop", "", true, ""),
	}
	add(helmReleaseKind, "csi", "shop-kubeconfig", true, "true") // the transfer has suspended it
	add(helmReleaseKind, "dns", "shop-kubeconfig", false, "")
	add(helmReleaseKind, "pay", "", true, "")
	add(kustomizationKind, "pay", "pay-kubeconfig", true, "")
	release, kubeconfig := kube.Key{Namespace: "shop", Name: "shop"}, kube.Key{Namespace: "shop", Name: "shop-kubeconfig"}
	if got := suspendedIn(w, release, kubeconfig); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
