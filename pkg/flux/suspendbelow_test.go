package flux

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// ofDev is a world with the objects of an environment: those that its Kustomization has applied, and those that these have applied.
func ofDev(t *testing.T) (w world, top kube.Key, below []kube.Ref) {
	t.Helper()
	w = world{kustomizationKind: {}, helmReleaseKind: {}, helmChartKind: {}}
	add := func(kind schema.GroupVersionKind, namespace, name string, by kube.Key) kube.Ref {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetGroupVersionKind(kind)
		obj.SetNamespace(namespace)
		obj.SetName(name)
		obj.SetLabels(map[string]string{AppliedBy: by.Name, appliedFrom: by.Namespace})
		ref := kube.RefOf(obj)
		w[kind][ref.Key] = obj
		return ref
	}
	top = kube.Key{Namespace: Namespace, Name: "clusters-dev"}
	add(kustomizationKind, top.Namespace, top.Name, systemKey)
	add(kustomizationKind, Namespace, "clusters-prod", systemKey)
	add(helmReleaseKind, "prod", "prod", kube.Key{Namespace: Namespace, Name: "clusters-prod"})
	add(helmReleaseKind, "prod", "alike", kube.Key{Namespace: "elsewhere", Name: top.Name})
	apps := add(kustomizationKind, "far", "far-apps", top)
	below = []kube.Ref{
		apps, add(helmReleaseKind, "far", "far", top), add(helmChartKind, Namespace, "dev-docker", top),
		add(kustomizationKind, "far", "common", apps.Key),
	}
	add(kustomizationKind, "far", "itself", kube.Key{Namespace: "far", Name: "itself"}) // a circle ends
	return w, top, below
}

func TestAppliedBelow(t *testing.T) {
	w, top, want := ofDev(t)
	if got := w.appliedBelow(top); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := w.appliedBelow(kube.Key{Namespace: "far", Name: "itself"}); len(got) != 0 {
		t.Errorf("below itself: %v", got)
	}
}

func TestPausedWith(t *testing.T) {
	w, top, below := ofDev(t)
	with := func(ref kube.Ref) kube.Key { return w.pausedWith(w[ref.GroupVersionKind][ref.Key]) }
	for _, ref := range below {
		if got := with(ref); got != (kube.Key{}) {
			t.Errorf("nobody has paused %s, and it is paused with %s", ref, got)
		}
	}
	w[helmReleaseKind][below[1].Key].SetAnnotations(map[string]string{pausedWithAnnotation: "flux-system/noted"})
	set(t, w[kustomizationKind][top], []any{map[string]any{"patch": pauseMark + " more\n"}}, "spec", "patches")
	for _, ref := range below {
		want := top
		if ref == below[1] {
			want.Name = "noted"
		}
		if got := with(ref); got != want {
			t.Errorf("%s is paused with %s, want %s", ref, got, want)
		}
	}
	if got := with(kube.Ref{GroupVersionKind: kustomizationKind, Key: kube.Key{Namespace: "far", Name: "itself"}}); got != (kube.Key{}) {
		t.Errorf("a circle: %s", got)
	}
}
