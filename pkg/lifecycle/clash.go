package lifecycle

import (
	"context"
	"net"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// inMemoryPort is where the docker provider's manager listens on all addresses, and no flag of it says otherwise; the API servers of
// its in-memory clusters are on the ports from 20000 up. In pods each has them for itself, as processes of one machine they clash.
const inMemoryPort = 19000

// portOwner is a host whose programs listen on ports of this machine.
type portOwner interface {
	// Listens names the program that listens on a port; "" if none does.
	Listens(port int) (program string, err error)
}

// checkProviderPort looks whether the docker provider can have its port on this machine, and names who has it.
func (s *session) checkProviderPort(ctx context.Context) preflight.Result {
	return s.checkPort(ctx, inMemoryPort)
}

func (s *session) checkPort(ctx context.Context, port uint16) preflight.Result {
	own, ok := s.host.(portOwner)
	if !ok {
		return preflight.Skip("its programs have ports of their own")
	}
	switch program, err := own.Listens(int(port)); {
	case err != nil:
		return preflight.FailWith(err)
	case program != "":
		return preflight.OK("%s has it already", program)
	}
	const purpose = "the docker provider, which has no other"
	free := preflight.Port(net.IPv4zero.String(), port, purpose).Run(ctx)
	if free.Status != preflight.StatusFail {
		return free
	}
	other, program := s.whoListens(ctx, int(port))
	if other == "" {
		return free
	}
	return preflight.Fail("stop that one first: fleetctl host stop --cluster "+other+"; or carry this one with --host kind",
		"port %d, which the docker provider always needs, is taken by %s of the embedded management cluster %s: one machine carries one with that provider",
		port, program, other)
}

// whoListens finds the other management cluster of this machine, one of our own, with a program that listens on port.
func (s *session) whoListens(ctx context.Context, port int) (cluster, program string) {
	records, err := s.Store.List()
	if err != nil {
		return "", "" // the port is taken, whoever has it
	}
	for _, r := range records {
		if r.Name == s.mgmt.Name {
			continue
		}
		h, err := hostOf(ctx, &r, s.Store.Cluster(r.Name))
		if err != nil {
			continue
		}
		if owner, ok := h.(portOwner); ok {
			if program, err := owner.Listens(port); err == nil && program != "" {
				return r.Name, program
			}
		}
	}
	return "", ""
}

// checkPivotSource refuses, before anything is made, a fleet repo that the cluster which is to take over could never read: what an
// embedded host serves is on this machine's loopback.
func (b *bootstrap) checkPivotSource() error {
	if b.opts.PivotTo == "" || b.mgmt.Host.Type != v1alpha1.HostEmbedded || b.fleet.Spec.Git.Scheme() != v1alpha1.GitLocal {
		return nil
	}
	return diag.Usage("give the fleet repo a remote with --git-url, or bootstrap with --host kind",
		"%s cannot take over: with the embedded host, a fleet repo without a remote is served on this machine's loopback only", b.opts.PivotTo)
}
