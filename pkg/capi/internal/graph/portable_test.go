package graph

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A Cluster that somebody has paused shows what Cluster API found before the pause. A hand-over that counted it would wait for it in vain.
// The pause of the hand-over itself hides no Cluster.
func TestAvailableBeforeAHandOver(t *testing.T) {
	g := &Graph{}
	for name, c := range map[string]struct {
		annotations map[string]string
		paused      bool
	}{
		"works": {}, "paused": {paused: true}, "annotated": {annotations: map[string]string{clusterv1.PausedAnnotation: ""}},
		"ours": {annotations: map[string]string{PausedMark: ""}, paused: true},
		"held": {annotations: map[string]string{HeldMark: "", clusterv1.PausedAnnotation: ""}},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"paused": c.paused},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True"}}},
		}}
		obj.SetGroupVersionKind(clusterKind)
		obj.SetNamespace(name)
		obj.SetName(name)
		obj.SetAnnotations(c.annotations)
		g.Items = append(g.Items, &Item{Unstructured: obj, kind: clusters})
	}
	if got, want := g.Available(), []string{"held/held", "ours/ours", "works/works"}; !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}
