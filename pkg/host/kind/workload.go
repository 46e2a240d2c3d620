package kind

import (
	"context"
	"errors"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// Containers names the running and stopped containers that the docker infrastructure provider made on this engine for a workload cluster. A
// teardown uses it to find leftovers after the cluster's controllers have ended.
func (h *Host) Containers(ctx context.Context, cluster string) ([]string, error) {
	containers, err := h.workload(ctx, cluster)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(containers))
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names, nil
}

// workload lists a workload cluster's containers, which have the same label as kind's. It never lists nodes of management clusters, even if
// cluster is the name of one.
func (h *Host) workload(ctx context.Context, cluster string) ([]engine.Container, error) {
	if cluster == "" {
		return nil, errors.New("list a workload cluster's containers: no cluster named")
	}
	all, err := h.engine.Containers(ctx, clusterLabel+"="+cluster)
	if err != nil {
		return nil, err
	}
	var found []engine.Container
	for _, c := range all {
		if !marked(c) {
			found = append(found, c)
		}
	}
	return found, nil
}
