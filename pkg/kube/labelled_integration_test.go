//go:build integration

package kube_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// listPages lists more objects than one page has: whole objects, and only their metadata.
func listPages(t *testing.T, c *kube.Client) {
	const count = 1003
	ctx, in := t.Context(), client.InNamespace("pages")
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pages"}}); err != nil {
		t.Fatal(err)
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("page-%04d", i)
	}
	err := kube.Each(32, names, func(name string) error {
		return c.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "pages", Name: name, Annotations: map[string]string{"of": name}},
			Data:       map[string]string{"name": name},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	var lists atomic.Int64
	config := c.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("limit") != "" {
				lists.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	counted, err := kube.NewForConfig(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := counted.ListKind(ctx, configMap, in)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for i := range all {
		if name, _, _ := unstructured.NestedString(all[i].Object, "data", "name"); name == all[i].GetName() &&
			all[i].GroupVersionKind() == configMap {
			got[name] = true
		}
	}
	if len(all) != count || len(got) != count || lists.Load() != 3 {
		t.Errorf("%d objects, %d of them whole and different, in %d pages", len(all), len(got), lists.Load())
	}
	some, err := counted.ListMetadata(ctx, configMap, func(o metav1.Object) bool { return strings.HasSuffix(o.GetName(), "7") }, in)
	if err != nil || len(some) != 100 || lists.Load() != 6 {
		t.Fatalf("%d objects after %d pages, %v", len(some), lists.Load(), err)
	}
	for _, obj := range some {
		if _, whole := obj.Object["data"]; whole || obj.GetUID() == "" || obj.GetAnnotations()["of"] != obj.GetName() ||
			obj.GetManagedFields() != nil || obj.GroupVersionKind() != configMap {
			t.Fatalf("metadata of %s: %v", obj.GetName(), obj.Object)
		}
	}
	if none, err := counted.ListMetadata(ctx, configMap.GroupVersion().WithKind("Nonsuch"),
		func(metav1.Object) bool { return true }); err != nil || len(none) != 0 {
		t.Errorf("of a kind that is not there: %v, %v", none, err)
	}
}
