package kind

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// Gateway is the address at which pods reach this machine. If the engine runs on this machine, it is the engine's bridge. With a virtual
// machine or a rootless engine, it is the address behind the engine's name for this machine.
func (h *Host) Gateway(ctx context.Context) (host.Gateway, error) {
	name := h.engine.NetworkName()
	network, _, err := h.engine.Network(ctx, name)
	if err != nil {
		return host.Gateway{}, err
	}
	local, err := localAddresses()
	if err != nil {
		return host.Gateway{}, err
	}
	for _, gateway := range network.Gateways {
		if gateway.Is4() && local[gateway] {
			return host.Gateway{Listen: gateway, Host: gateway.String()}, nil
		}
	}
	return h.namedGateway(ctx, local)
}

// namedGateway resolves the engine's name for this machine in the node. Pods need the address, because they do not use the node's hosts
// file. The engine forwards connections to that address to this machine's loopback, unless the address belongs to this machine.
func (h *Host) namedGateway(ctx context.Context, local map[netip.Addr]bool) (host.Gateway, error) {
	name := "host.docker.internal"
	if h.engine.Name() == engine.Podman {
		name = "host.containers.internal"
	}
	out, err := h.exec(ctx, "getent ahostsv4 "+name)
	address, parseErr := netip.ParseAddr(firstField(out))
	if err != nil || parseErr != nil {
		return host.Gateway{}, diag.Errorf("use a Git remote that the cluster reaches (spec.git.url)",
			"%s gives pods no address of this machine (%s does not resolve in node %s)", h.engine.Name(), name, h.controlPlane())
	}
	if local[address] {
		return host.Gateway{Listen: address, Host: address.String()}, nil
	}
	return host.Gateway{Listen: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Host: address.String()}, nil
}

func localAddresses() (map[netip.Addr]bool, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	local := map[netip.Addr]bool{}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			local[prefix.Addr().Unmap()] = true
		}
	}
	return local, nil
}

func firstField(s string) string {
	if fields := strings.Fields(s); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
