package kind

import (
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// Engine is the cluster's container engine.
func (h *Host) Engine() *engine.Engine { return h.engine }
