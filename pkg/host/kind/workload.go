package kind

import (
	"context"
	"errors"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// Containers names the containers that the docker infrastructure provider made on this engine for a workload cluster,
// running or not. A teardown uses it to tell what is left once the cluster's controllers are gone.
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

// RemoveContainers removes those containers with their anonymous volumes. None is no error.
func (h *Host) RemoveContainers(ctx context.Context, cluster string) error {
	containers, err := h.workload(ctx, cluster)
	if err != nil {
		return err
	}
	return h.engine.Remove(ctx, containers...)
}

// workload lists a workload cluster's containers, which carry the same label as kind's. Nodes of management clusters are
// never among them, whatever name is asked for.
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
