//go:build !linux

package privatenet

import (
	"context"
	"net"
)

// Network is the private loopback of the children that this process starts while it is there.
type Network struct{ Machine }

// Start returns ErrUnsupported.
func Start(context.Context, Options) (*Network, error) { return nil, ErrUnsupported }

// Check returns ErrUnsupported.
func Check() error { return ErrUnsupported }

// Dial implements Loopback.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.Machine.Dial(ctx, network, address)
}

// Lost is never closed.
func (*Network) Lost() <-chan struct{} { return nil }

// Close does nothing.
func (*Network) Close() error { return nil }

// IsHelper is false.
func IsHelper() bool { return false }

// Help returns ErrUnsupported.
func Help() error { return ErrUnsupported }
