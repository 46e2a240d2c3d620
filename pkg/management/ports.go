package management

import (
	"context"
	"net"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// InMemoryPort is a port on which the docker provider's manager always listens, on all addresses. The API servers of its in-memory
// clusters listen from 20000 on. Pods have ports of their own, but two such managers on one machine clash.
const InMemoryPort = 19000

// inMemoryManager is the Deployment that listens on InMemoryPort.
const inMemoryManager = "capd-system/capd-controller-manager"

// checkRestart refuses to start a host with the docker provider while another program has InMemoryPort: the provider would crash again and
// again.
func (t *Target) checkRestart(ctx context.Context, store state.Store, h host.Host, port uint16) error {
	remembers, ok := h.(host.Rememberer)
	if !ok {
		return nil
	}
	ran, err := remembers.Deployments()
	if err != nil || !slices.Contains(ran, inMemoryManager) {
		return err
	}
	r := CheckPort(ctx, store, t.Name, h, port)
	if r.Status != preflight.StatusFail {
		return nil
	}
	return diag.Errorf(r.Hint, "%s", r.Summary)
}

// CheckPort checks whether the host h of the management cluster called name can have a port of this machine. A failure names the management
// cluster in store whose host has the port.
func CheckPort(ctx context.Context, store state.Store, name string, h host.Host, port uint16) preflight.Result {
	own, ok := h.(host.PortOwner)
	if !ok {
		return preflight.Skip("its programs have ports of their own")
	}
	switch program, err := own.Listens(int(port)); {
	case err != nil:
		return preflight.FailWith(err)
	case program != "":
		return preflight.OK("%s has it already", program)
	}
	const purpose = "the docker provider, which can use no other port"
	free := preflight.Port(net.IPv4zero.String(), port, purpose)(ctx)
	if free.Status != preflight.StatusFail {
		return free
	}
	// A host that starts may have taken the port between the two looks.
	if program, err := own.Listens(int(port)); err == nil && program != "" {
		return preflight.OK("%s has it already", program)
	}
	other, program := whoListens(ctx, store, name, int(port))
	if other == "" {
		return free
	}
	return preflight.Fail("stop that one first: fleetctl host stop --management "+other+"; or carry this one with --host kind",
		"port %d, which the docker provider always needs, is taken by %s of the embedded management cluster %s: one machine carries one with "+
			"that provider",
		port, program, other)
}

// whoListens finds a management cluster of this machine, other than name, with a program that listens on port.
func whoListens(ctx context.Context, store state.Store, name string, port int) (cluster, program string) {
	records, err := store.Readable()
	if err != nil {
		return "", "" // the port is taken, whoever has it
	}
	for _, r := range records {
		if r.Name == name {
			continue
		}
		h, err := hosts.Remembered(ctx, &r, store.Cluster(r.Name))
		if err != nil {
			continue
		}
		if owner, ok := h.(host.PortOwner); ok {
			if program, err := owner.Listens(port); err == nil && program != "" {
				return r.Name, program
			}
		}
	}
	return "", ""
}
