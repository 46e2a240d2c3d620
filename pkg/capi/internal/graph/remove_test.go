package graph

import (
	"context"
	"slices"
	"sync"
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

// TestRemoveBatch removes objects of one kind with finalizers: each is written once, and one request deletes them all. It leaves others:
// one that is not to be removed, and one that has the name of an object to remove but is another. Where the API server refuses to delete
// several at once, each gets a request.
func TestRemoveBatch(t *testing.T) {
	machine := schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}
	stored := func(name, uid string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(machine)
		obj.SetNamespace("team")
		obj.SetName(name)
		obj.SetUID(types.UID(uid))
		obj.SetFinalizers([]string{"example.com/held"})
		return obj
	}
	for name, c := range map[string]struct {
		refuses bool
		want    map[string]int
	}{
		"at once":    {want: map[string]int{"patch": 4, "delete all": 1}},
		"one by one": {refuses: true, want: map[string]int{"patch": 4, "delete all": 1, "delete": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			calls := map[string]int{}
			count := func(call string) {
				mu.Lock()
				defer mu.Unlock()
				calls[call]++
			}
			scheme := runtime.NewScheme()
			scheme.AddKnownTypeWithName(machine, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(machine.GroupVersion().WithKind("MachineList"), &unstructured.UnstructuredList{})
			inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				stored("a", "1"), stored("b", "2"), stored("c", "3"), stored("again", "new"), stored("stays", "5"))
			watched := inner.WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, o ...client.PatchOption) error {
					count("patch")
					if obj.GetName() == "again" { // as an API server answers to a write with another UID
						return apierrors.NewConflict(schema.GroupResource{Group: machine.Group, Resource: "machines"}, obj.GetName(), nil)
					}
					return w.Patch(ctx, obj, patch, o...)
				},
				Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
					count("delete")
					return w.Delete(ctx, obj, o...)
				},
				DeleteAllOf: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.DeleteAllOfOption) error {
					count("delete all")
					if c.refuses {
						return apierrors.NewMethodNotSupported(schema.GroupResource{Group: machine.Group, Resource: "machines"}, "delete")
					}
					return w.DeleteAllOf(ctx, obj, o...)
				},
			}).Build()
			m := &Members{kube: &kube.Client{WithWatch: watched}}
			objects := []*unstructured.Unstructured{stored("a", "1"), stored("b", "2"), stored("c", "3"), stored("again", "old")}
			b, done := &batch{label: "some", size: len(objects)}, 0
			for _, obj := range objects {
				gone, err := m.remove(t.Context(), removal{obj, b})
				if err != nil || done > 0 {
					t.Fatalf("%s after %d were done: %v", obj.GetName(), done, err)
				}
				done += gone
			}
			if done != len(objects) {
				t.Errorf("%d are done", done)
			}
			left := &unstructured.UnstructuredList{}
			left.SetGroupVersionKind(machine.GroupVersion().WithKind("MachineList"))
			if err := watched.List(t.Context(), left); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, obj := range left.Items {
				names = append(names, obj.GetName())
				if len(obj.GetFinalizers()) == 0 {
					t.Errorf("%s has lost its finalizer", obj.GetName())
				}
			}
			if diff := cmp.Diff([]string{"again", "stays"}, names); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBatches divides the objects of one level.
func TestBatches(t *testing.T) {
	var objects []*unstructured.Unstructured
	add := func(n int, kind, namespace string, finalizers ...string) {
		for range n {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
			obj.SetNamespace(namespace)
			obj.SetFinalizers(finalizers)
			objects = append(objects, obj)
		}
	}
	add(2, "Config", "team")
	add(3, "Machine", "team", "example.com/held")
	add(1, "Machine", "other", "example.com/held")
	add(1, "Cluster", "team", "example.com/held")
	sizes := func() (sizes []int) {
		var last *batch
		for _, r := range removals(objects) {
			switch {
			case r.batch == nil:
				sizes = append(sizes, 1)
			case r.batch != last:
				sizes = append(sizes, r.batch.size)
			}
			last = r.batch
		}
		return sizes
	}
	if diff := cmp.Diff([]int{2, 1, 1, 1, 1, 1}, sizes()); diff != "" {
		t.Error(diff)
	}
	objects = nil
	add(30*mostOfBatch, "Machine", "team", "example.com/held")
	if diff := cmp.Diff(slices.Repeat([]int{mostOfBatch}, 30), sizes()); diff != "" {
		t.Error(diff)
	}
}
