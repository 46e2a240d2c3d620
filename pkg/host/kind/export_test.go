package kind

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// Engine is the cluster's container engine.
func (h *Host) Engine() *engine.Engine { return h.engine }

// RemoveContainers removes the containers of a workload cluster with their anonymous volumes. It is no error if there is none.
func (h *Host) RemoveContainers(ctx context.Context, cluster string) error {
	containers, err := h.workload(ctx, cluster)
	if err != nil {
		return err
	}
	return h.engine.Remove(ctx, containers...)
}
