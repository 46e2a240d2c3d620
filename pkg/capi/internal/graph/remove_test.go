package graph

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestRemove counts the requests to remove one object. Without a finalizer it is one, unless the object has changed since it was listed.
func TestRemove(t *testing.T) {
	config := schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfig"}
	stored := func(finalizers ...string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(config)
		obj.SetNamespace("team")
		obj.SetName("worker")
		obj.SetUID(types.UID("first"))
		obj.SetFinalizers(finalizers)
		return obj
	}
	for name, c := range map[string]struct {
		finalizers []string
		meanwhile  func(*unstructured.Unstructured) // changes the object after it was listed
		denies     bool                             // a webhook that allows the deletion of marked objects only
		want       []string
	}{
		"no finalizer":             {want: []string{"delete"}},
		"finalizer":                {finalizers: []string{"example.com/held"}, want: []string{"patch", "delete"}},
		"a finalizer since listed": {meanwhile: hold, want: []string{"delete", "patch", "delete"}},
		"a webhook":                {denies: true, want: []string{"delete", "patch", "delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			inner := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(stored(c.finalizers...))
			watched := inner.WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, o ...client.PatchOption) error {
					calls = append(calls, "patch")
					return w.Patch(ctx, obj, patch, o...)
				},
				Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
					calls = append(calls, "delete")
					there := stored()
					if err := w.Get(ctx, client.ObjectKeyFromObject(obj), there); err != nil {
						return err
					}
					if _, marked := there.GetAnnotations()[clusterctlv1.DeleteForMoveAnnotation]; c.denies && !marked {
						return apierrors.NewForbidden(schema.GroupResource{Group: config.Group, Resource: "kubeadmconfigs"}, obj.GetName(), nil)
					}
					return w.Delete(ctx, obj, o...)
				},
			}).Build()
			listed := stored()
			if err := watched.Get(t.Context(), kube.Key{Namespace: "team", Name: "worker"}, listed); err != nil {
				t.Fatal(err)
			}
			if c.meanwhile != nil {
				changed := listed.DeepCopy()
				c.meanwhile(changed)
				if err := watched.Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			m := &Members{kube: &kube.Client{WithWatch: watched}}
			if err := m.Remove(t.Context(), []*unstructured.Unstructured{listed}, nil); err != nil {
				t.Fatal(err)
			}
			if err := watched.Get(t.Context(), client.ObjectKeyFromObject(listed), stored()); !apierrors.IsNotFound(err) {
				t.Errorf("it is there still: %v", err)
			}
			if diff := cmp.Diff(c.want, calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func hold(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{"example.com/held"}) }
