package schema

import (
	"math"
	"strings"
	"testing"
)

// TestReplicasOfScale: an API server refuses a number of replicas that no kind can be scaled to, whatever the schema of the kind says.
func TestReplicasOfScale(t *testing.T) {
	const crd = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pools.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Pool", "plural": "pools"}, "versions": [
		{"name": "v1", "served": true, "storage": true,
			"subresources": {"scale": {"specReplicasPath": ".spec.size.nodes", "statusReplicasPath": ".status.nodes"}},
			"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
				"size": {"type": "object", "properties": {"nodes": {"type": "integer", "format": "int64"}}}}}}}}},
		{"name": "v2", "served": true, "storage": false,
			"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
				"size": {"type": "object", "properties": {"nodes": {"type": "integer", "format": "int64"}}}}}}}}}
	]}}`
	set := NewSet()
	if _, err := set.Add("crd.json", []byte(crd)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		version string
		spec    map[string]any
		want    string
	}{
		{"negative", "v1", map[string]any{"size": map[string]any{"nodes": int64(-1)}}, "non-negative"},
		{"negative beside an unknown field", "v1", map[string]any{"x": "y", "size": map[string]any{"nodes": int64(-1)}}, "non-negative"},
		{"too many", "v1", map[string]any{"size": map[string]any{"nodes": int64(math.MaxInt32 + 1)}}, "less than or equal"},
		{"most", "v1", map[string]any{"size": map[string]any{"nodes": int64(math.MaxInt32)}}, ""},
		{"none", "v1", map[string]any{"size": map[string]any{"nodes": int64(0)}}, ""},
		{"absent", "v1", map[string]any{}, ""},
		{"a version that is not scaled", "v2", map[string]any{"size": map[string]any{"nodes": int64(-1)}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems, err := set.Check(t.Context(), map[string]any{
				"apiVersion": "example.com/" + c.version, "kind": "Pool",
				"metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": c.spec,
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range problems {
				if p.Path == "spec.size.nodes" {
					got = append(got, p.Summary)
				}
			}
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("Check reports %q, want one problem with %q", got, c.want)
			}
		})
	}
}
