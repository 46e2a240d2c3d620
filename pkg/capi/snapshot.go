package capi

import (
	"bytes"
	"context"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Snapshot returns all objects of the management cluster's Clusters as YAML, owners first, with status, and the number of objects. It
// includes Secrets, so callers must keep it private.
func (m *Manager) Snapshot(ctx context.Context) (content []byte, objects int, err error) {
	graph, err := m.Graph(ctx, GraphOptions{})
	if err != nil {
		return nil, 0, fmt.Errorf("take a snapshot of the Cluster API objects: %w", err)
	}
	var out bytes.Buffer
	for _, item := range graph.Items {
		object, err := yaml.Marshal(item.Object)
		if err != nil {
			return nil, 0, fmt.Errorf("take a snapshot of %s: it cannot be encoded", item.Ref())
		}
		out.WriteString("---\n")
		out.Write(object)
	}
	return out.Bytes(), len(graph.Items), nil
}
