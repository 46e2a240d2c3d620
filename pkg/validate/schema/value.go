package schema

import (
	"context"
	"encoding/json"
	"fmt"
)

// Value checks values against a schema that is part of an object. A ClusterClass, for example, has a schema for each of its variables.
// Several goroutines may use a Value. It compiles the schema once.
type Value struct{ set *Set }

const valueGroup, valueKind = "fleetctl.dev", "Value"

// NewValue returns a Value for a schema, with the types of JSON.
func NewValue(schema map[string]any) (*Value, error) {
	crd, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": crdKind, "metadata": map[string]any{"name": "values." + valueGroup},
		"spec": map[string]any{
			"group": valueGroup, "scope": "Cluster", "names": map[string]any{"kind": valueKind, "plural": "values"},
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
	return &Value{set}, nil
}

// Check checks a value with the types of JSON, and does not change it. The paths of problems begin with "value". The error says that an API
// server would not accept the schema.
func (v *Value) Check(ctx context.Context, value any) ([]Problem, error) {
	return v.set.Check(ctx, map[string]any{
		"apiVersion": valueGroup + "/v1", "kind": valueKind, "metadata": map[string]any{"name": "value"}, "value": value,
	})
}
