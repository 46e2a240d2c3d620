package capi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

func TestEager(t *testing.T) {
	objects, err := kube.ParseYAML([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: b}
spec:
  template:
    spec:
      containers:
      - {name: defaults, readinessProbe: {httpGet: {path: /readyz}}}
      - {name: slow, readinessProbe: {initialDelaySeconds: 5, periodSeconds: 5, failureThreshold: 2}}
      - {name: none, livenessProbe: {periodSeconds: 60}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}}
`))
	if err != nil {
		t.Fatal(err)
	}
	before := objects[0].DeepCopy()
	got := eager(objects)
	want := []any{
		map[string]any{"name": "defaults", "readinessProbe": map[string]any{
			"httpGet": map[string]any{"path": "/readyz"}, "periodSeconds": int64(1), "failureThreshold": int64(30),
		}},
		map[string]any{"name": "slow", "readinessProbe": map[string]any{"periodSeconds": int64(1), "failureThreshold": int64(10)}},
		map[string]any{"name": "none", "livenessProbe": map[string]any{"periodSeconds": int64(60)}},
	}
	spec := got[0].Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	if diff := cmp.Diff(want, spec["containers"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, objects[0]); diff != "" {
		t.Errorf("the original changed: %s", diff)
	}
	if len(got) != 2 || got[1] != objects[1] {
		t.Errorf("other objects changed: %v", got)
	}
}
