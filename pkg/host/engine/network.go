package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
)

// NetworkName is the name of the network to which kind connects its nodes.
func (e *Engine) NetworkName() string {
	switch e.name {
	case Docker:
		if n := os.Getenv("KIND_EXPERIMENTAL_DOCKER_NETWORK"); n != "" {
			return n
		}
	case Podman:
		if n := os.Getenv("KIND_EXPERIMENTAL_PODMAN_NETWORK"); n != "" {
			return n
		}
	case Nerdctl, Finch:
	}
	return "kind"
}

// Network describes a container network.
type Network struct {
	Name string
	// Gateways are the addresses of the engine's machine in the network.
	Gateways []netip.Addr
}

// Network finds a network by its name. ok is false if there is none.
func (e *Engine) Network(ctx context.Context, name string) (n Network, ok bool, err error) {
	out, err := e.Output(ctx, "network", "inspect", name)
	if err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return Network{}, false, nil
		}
		return Network{}, false, fmt.Errorf("look for network %s: %w", name, err)
	}
	gateways, err := parseGateways([]byte(out))
	if err != nil {
		return Network{}, false, err
	}
	return Network{Name: name, Gateways: gateways}, true, nil
}

// RemoveNetwork removes a network. The engine refuses while containers use it.
func (e *Engine) RemoveNetwork(ctx context.Context, name string) error {
	if _, err := e.Output(ctx, "network", "rm", name); err != nil {
		return fmt.Errorf("remove network %s: %w", name, err)
	}
	return nil
}

// parseGateways reads an inspected network: of Docker and nerdctl (IPAM), of Podman with netavark (subnets), or with CNI (plugins).
func parseGateways(data []byte) ([]netip.Addr, error) {
	type subnet struct{ Gateway string }
	var raw []struct {
		IPAM    struct{ Config []subnet }
		Subnets []subnet
		Plugins []struct {
			IPAM struct{ Ranges [][]subnet }
		}
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read the engine's network: %w", err)
	}
	var found []netip.Addr
	add := func(s subnet) {
		if a, err := netip.ParseAddr(s.Gateway); err == nil {
			found = append(found, a)
		}
	}
	for _, n := range raw {
		for _, s := range append(n.IPAM.Config, n.Subnets...) {
			add(s)
		}
		for _, p := range n.Plugins {
			for _, r := range p.IPAM.Ranges {
				for _, s := range r {
					add(s)
				}
			}
		}
	}
	return found, nil
}
