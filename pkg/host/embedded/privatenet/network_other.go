//go:build !linux

package privatenet

import (
	"context"
	"net"
	"strconv"
)

// Network is the machine's loopback, because this system has no private one.
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

func takenOnMachine(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))) //nolint:noctx // nothing to wait for
		if err != nil {
			return true
		}
		_ = l.Close()
	}
	return false
}
