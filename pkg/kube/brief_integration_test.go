//go:build integration

package kube_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// pond is a kind that needs a spec, and has a status and a field of its own beside the two.
const pond = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ponds.brief.example.com}
spec:
  group: brief.example.com
  names: {kind: Pond, plural: ponds}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec: {type: object, required: [depth], properties: {depth: {type: integer}}}
          status: {type: object, properties: {fish: {type: integer}}}
          beside: {type: string}
`

// briefWrites creates an object and writes its status with no more than is needed. The object is then as after whole writes, also in whose
// its fields are. A status for another object, or for an earlier version of it, is refused.
func briefWrites(t *testing.T, c *kube.Client) {
	ctx := t.Context()
	if _, err := kubetest.ApplyYAML(ctx, c, []byte(pond), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitEstablished(ctx, "ponds.brief.example.com"); err != nil {
		t.Fatal(err)
	}
	served := func(ctx context.Context) (bool, error) { // discovery tells of the kind a moment after it is established
		_, err := c.Mapping(ctx, schema.GroupKind{Group: "brief.example.com", Kind: "Pond"}, "v1")
		return err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, served); err != nil {
		t.Fatal(err)
	}
	object := func(content map[string]any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: content}
		obj.SetAPIVersion("brief.example.com/v1")
		obj.SetKind("Pond")
		obj.SetNamespace("default")
		obj.SetName("frogs")
		return obj
	}
	whole := object(map[string]any{"spec": map[string]any{"depth": int64(3), "unknown": "dropped"}, "beside": "a path"})
	created, err := c.CreateBriefly(ctx, whole)
	if err != nil {
		t.Fatal(err)
	}
	if created.GetUID() == "" || created.GetResourceVersion() == "" || created.GetGeneration() != 1 || created.GetKind() != "Pond" {
		t.Errorf("the answer lacks metadata: %v", created.Object)
	}
	if created.Object["spec"] != nil {
		t.Errorf("the answer is the whole object: %v", created.Object)
	}
	if _, err := c.CreateBriefly(ctx, whole); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create it again: %v", err)
	}
	status := func(fish int64, uid types.UID) *unstructured.Unstructured {
		obj := object(map[string]any{"status": map[string]any{"fish": fish}, "beside": "a path"})
		obj.SetUID(uid)
		obj.SetResourceVersion(created.GetResourceVersion())
		return obj
	}
	if err := c.UpdateStatusBriefly(ctx, status(9, "another")); !apierrors.IsConflict(err) {
		t.Errorf("write the status of another object: %v", err)
	}
	if err := c.UpdateStatusBriefly(ctx, status(2, created.GetUID())); err != nil {
		t.Fatal(err)
	}
	if err := c.UpdateStatusBriefly(ctx, status(9, created.GetUID())); !apierrors.IsConflict(err) {
		t.Errorf("write the status of an earlier version: %v", err)
	}
	now := object(map[string]any{})
	if err := c.Get(ctx, kube.Key{Namespace: "default", Name: "frogs"}, now); err != nil {
		t.Fatal(err)
	}
	fish, _, _ := unstructured.NestedInt64(now.Object, "status", "fish")
	depth, _, _ := unstructured.NestedInt64(now.Object, "spec", "depth")
	if fish != 2 || depth != 3 || now.Object["beside"] != "a path" {
		t.Errorf("after both writes it is %v", now.Object)
	}
	var fields []string
	for _, m := range now.GetManagedFields() {
		content, err := json.Marshal(m.FieldsV1)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, m.Manager+" "+m.Subresource+" "+string(content))
	}
	all := strings.Join(fields, "; ")
	for _, want := range []string{"fleetctl  ", `"f:depth"`, `"f:beside"`, "fleetctl status ", `"f:fish"`} {
		if !strings.Contains(all, want) {
			t.Errorf("managed fields lack %s: %s", want, all)
		}
	}
}
