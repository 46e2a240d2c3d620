package flux

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// merged is what an API server makes of an object and a merge patch.
func merged(old, patch map[string]any) map[string]any {
	next := maps.Clone(old)
	if next == nil {
		next = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(next, key)
		case map[string]any:
			was, _ := next[key].(map[string]any)
			next[key] = merged(was, value)
		default:
			next[key] = value
		}
	}
	return next
}

// What keeps a Kustomization from applying an object may have been there before. A run that was killed lets go of the object again.
func TestTakeBackRestoresTheAnnotation(t *testing.T) {
	kubeconfig := kube.Key{Namespace: "shop", Name: "shop-kubeconfig"}
	for name, c := range map[string]struct {
		before map[string]string
		change func(a map[string]string) // what somebody changes in between
		want   map[string]string
	}{
		"none":     {},
		"another":  {before: map[string]string{"of": "a user"}, want: map[string]string{"of": "a user"}},
		"disabled": {before: map[string]string{reconcileAnnotation: "disabled"}, want: map[string]string{reconcileAnnotation: "disabled"}},
		"enabled":  {before: map[string]string{reconcileAnnotation: "enabled"}, want: map[string]string{reconcileAnnotation: "enabled"}},
		"empty":    {before: map[string]string{reconcileAnnotation: ""}, want: map[string]string{reconcileAnnotation: ""}},
		"changed in between": {
			before: map[string]string{reconcileAnnotation: "disabled"},
			change: func(a map[string]string) { a[reconcileAnnotation] = "enabled" },
			want:   map[string]string{reconcileAnnotation: "enabled"},
		},
		"removed in between": {
			before: map[string]string{reconcileAnnotation: "disabled"},
			change: func(a map[string]string) { delete(a, reconcileAnnotation) },
		},
	} {
		for _, times := range []int{1, 2} {
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "spec": map[string]any{"prune": true},
			}}
			if c.before != nil {
				obj.SetAnnotations(c.before)
			}
			for range times {
				obj.Object = merged(obj.Object, lettingGo(obj, kubeconfig))
			}
			a := obj.GetAnnotations()
			if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); !suspended || a[reconcileAnnotation] != "disabled" {
				t.Errorf("%s: not let go: %v", name, obj.Object)
			}
			if c.change != nil {
				c.change(a)
				obj.SetAnnotations(a)
			}
			obj.Object = merged(obj.Object, takingBack(obj))
			if got := obj.GetAnnotations(); !maps.Equal(got, c.want) {
				t.Errorf("%s, let go %d times: got %v, want %v", name, times, got, c.want)
			}
			if _, suspended, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended {
				t.Errorf("%s: still suspended", name)
			}
		}
	}
}

// What was let go for another cluster of the namespace stays so: another management cluster may have that one.
func TestTakeBackLeavesOtherClusters(t *testing.T) {
	kubeconfig := kube.Key{Namespace: "team", Name: "b-kubeconfig"}
	for name, c := range map[string]struct {
		annotations map[string]string
		namespace   string
		want        bool
	}{
		"its own":                         {map[string]string{letGoAnnotation: "true", letGoFor: "team/b-kubeconfig"}, "team", true},
		"its own, in another namespace":   {map[string]string{letGoAnnotation: "true", letGoFor: "team/b-kubeconfig"}, "flux-system", true},
		"another cluster's":               {map[string]string{letGoAnnotation: "true", letGoFor: "team/a-kubeconfig"}, "team", false},
		"of an earlier release":           {map[string]string{letGoAnnotation: "true"}, "team", true},
		"of an earlier release elsewhere": {map[string]string{letGoAnnotation: "true"}, "other", false},
		"not let go":                      {nil, "team", false},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"}}
		obj.SetNamespace(c.namespace)
		obj.SetAnnotations(c.annotations)
		if got := isTakenBack(obj, "team", kubeconfig); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
