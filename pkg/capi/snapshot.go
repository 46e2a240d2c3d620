package capi

import (
	"bytes"
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/kube"
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
		object, err := kube.YAML(item.Object)
		if err != nil {
			return nil, 0, fmt.Errorf("take a snapshot of %s: it cannot be encoded", item.Ref())
		}
		out.WriteString("---\n")
		out.Write(object)
	}
	return out.Bytes(), len(graph.Items), nil
}
