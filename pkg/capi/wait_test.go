package capi

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// After a hand-over, nobody waits for a Cluster that its user has paused before. It shows the finding of the time before the pause.
func TestWaitsForNoPausedCluster(t *testing.T) {
	objects := kube.Objects{}
	cluster := func(name string, annotations, spec map[string]any, generation, seen int64) kube.Key {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": name, "name": name, "annotations": annotations, "generation": generation}, "spec": spec,
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Available", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": seen,
			}}},
		}}
		obj.SetGroupVersionKind(clusterKind)
		key := kube.Key{Namespace: name, Name: name}
		objects[key] = obj
		return key
	}
	fine := cluster("fine", nil, nil, 2, 2)
	waits := cluster("waits", nil, nil, 2, 1)
	paused := cluster("paused", nil, map[string]any{"paused": true}, 2, 1)
	annotated := cluster("annotated", map[string]any{"cluster.x-k8s.io/paused": ""}, nil, 2, 1)
	gone := kube.Key{Namespace: "gone", Name: "gone"}
	all := []kube.Key{fine, waits, paused, annotated, gone}
	for story, c := range map[string]struct{ looked, want []kube.Key }{
		"handed over": {unpausedOf(objects, all), []kube.Key{waits, gone}},
		"all":         {unpausedOf(objects, nil), []kube.Key{waits}},
		"otherwise":   {all, []kube.Key{waits, paused, annotated, gone}},
	} {
		var got []kube.Key
		for _, u := range unavailableOf(objects, c.looked) {
			got = append(got, u.Ref.Key)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: waits for %v, not %v", story, got, c.want)
		}
	}
}
