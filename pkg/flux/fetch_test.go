package flux

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a source says counts once it is about the source as it is now.
func TestFetchedBy(t *testing.T) {
	for name, tc := range map[string]struct {
		observed       int64
		ready, message string
		reason         string
		seen           bool
	}{
		"fetched":              {2, "True", "stored artifact", "", true},
		"before it was looked": {1, "True", "stored artifact", "", false},
		"refused":              {2, "False", "authentication required", "authentication required", true},
		"says nothing":         {2, "Unknown", "", notReady, true},
		"without a condition":  {2, "", "", notReady, false},
	} {
		t.Run(name, func(t *testing.T) {
			var conditions []any
			if tc.ready != "" {
				conditions = []any{
					map[string]any{"type": "Reconciling", "status": "False", "message": "another"},
					map[string]any{"type": "Ready", "status": tc.ready, "message": tc.message},
				}
			}
			revision, reason, seen := fetchedBy(&unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"generation": int64(2)},
				"status": map[string]any{
					"observedGeneration": tc.observed, "artifact": map[string]any{"revision": "main@sha1:a"},
					"conditions": conditions,
				},
			}})
			if revision != "main@sha1:a" || reason != tc.reason || seen != tc.seen {
				t.Errorf("got %q, %q, %v", revision, reason, seen)
			}
		})
	}
}
