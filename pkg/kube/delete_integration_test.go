//go:build integration

package kube_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

func deleteObjects(t *testing.T, c *kube.Client) {
	objects, err := kube.ParseYAML([]byte(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: default, finalizers: [fleetctl.dev/test]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: free, namespace: default}}
---
{apiVersion: nonsuch.test/v1, kind: Nonsuch, metadata: {name: absent}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), objects[:2], kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := c.Delete(ctx, objects, kube.DeleteOptions{Wait: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v while a finalizer holds the object", err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := c.Patch(t.Context(), objects[0], patch); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), objects, kube.DeleteOptions{Wait: true}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"held", "free"} {
		if there, err := c.Exists(t.Context(), configMap, kube.Key{Namespace: "default", Name: name}); err != nil || there {
			t.Errorf("%s exists: %v, %v", name, there, err)
		}
	}
}
