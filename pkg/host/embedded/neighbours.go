package embedded

import (
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// Neighbours tells what other users of this machine can reach on the host without a credential. For a host that does not run, it tells what
// they could reach.
func (h *Host) Neighbours(ctx context.Context) (*host.Neighbours, error) {
	state, err := h.State(ctx)
	if err != nil {
		return nil, err
	}
	if state != host.StateRunning {
		err := privatenet.Check()
		return &host.Neighbours{Private: err == nil, Reason: text(err)}, nil
	}
	running, err := process.Running(h.dir.path(processesDir))
	if err != nil {
		return nil, fmt.Errorf("look at the processes of management cluster %s: %w", h.name, err)
	}
	n := &host.Neighbours{Private: true}
	for _, r := range running {
		if controlplane.WantsCertificate(r.Name) {
			continue
		}
		for _, at := range r.Listening() {
			n.Open = append(n.Open, host.Listener{Program: r.Name, Address: at})
			n.Private = n.Private && isInMemoryPort(int(at.Port()))
		}
	}
	if !n.Private {
		n.Reason = text(privatenet.Check())
	}
	return n, nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
