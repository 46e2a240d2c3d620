package schema

import (
	"context"
	"encoding/json"
	"fmt"
)

// CheckValue judges a value by a schema that an object has in it, as a ClusterClass has one for each of its variables. Both are in JSON's
// terms, and value is left as it is. The paths of problems begin with "value". The error says that an API server would not take the schema.
func CheckValue(ctx context.Context, schema map[string]any, value any) ([]Problem, error) {
	const group, kind = "fleetctl.dev", "Value"
	crd, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": crdKind, "metadata": map[string]any{"name": "values." + group},
		"spec": map[string]any{
			"group": group, "scope": "Cluster", "names": map[string]any{"kind": kind, "plural": "values"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"value": schema}}},
			}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	set := NewSet()
	set.AddObject("a variable", crd)
	return set.Check(ctx, map[string]any{
		"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "value"}, "value": value,
	})
}
