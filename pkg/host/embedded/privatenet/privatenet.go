// Package privatenet lets the children of this process listen on a loopback of their own, which other users of the machine do not reach.
// It needs no root, no device and no other program. It works on Linux.
//
// The children stay in the machine's network. They reach names, registries, clouds, an engine's socket and servers on the machine's
// loopback as without this package, at the kernel's speed. Only two of their system calls are filtered: bind and connect wait, by
// seccomp, until this process has answered them. When a child binds a TCP socket to a port, this process replaces it by a socket of a
// network namespace that has only a loopback. When a child connects to such a port on loopback, its socket is replaced as well. The
// sockets come from a helper: this program, running in that namespace. It moves no bytes.
//
// (The alternative is a user-space network stack behind a tap device. It would have to carry all outgoing traffic, and to forward the
// machine's loopback in both directions. It needs /dev/net/tun, which is often only for root, and missing in containers.)
package privatenet

import (
	"context"
	"errors"
	"net"
	"os"
)

// ErrUnsupported is in the tree of Start's error if this machine allows no private network: it lacks seccomp notifications or user
// namespaces.
var ErrUnsupported = errors.New("the machine does not allow it")

// Options of Start.
type Options struct {
	// Open says which ports stay on the machine's loopback, besides the ports that Loopback.Open opens. nil adds none.
	Open func(port int) bool
	// Log, if not nil, is called for each socket that could not be kept private.
	Log func(format string, args ...any)
}

// Loopback is the loopback on which the children of this process listen.
type Loopback interface {
	// Dial is net.Dialer's DialContext, also to ports of the private loopback.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Claim reserves a port of loopback for the children, even before one of them listens on it. No child then connects to a program of
	// another user that listens on this port of the machine.
	Claim(port int)
	// Open keeps a port on the machine's loopback, where every user can reach it. A child that asks to listen on all addresses listens on
	// loopback only.
	Open(port int)
	// Taken tells whether another program already listens on a port, on loopback or on all addresses, so that a child could not. Taken
	// itself never keeps a child from listening.
	Taken(port int) bool
	// Process is the id of a process in the network with the private ports, for process.Listener.
	Process() int
}

// Machine is the machine's own loopback, where nothing is private.
type Machine struct{}

// Dial is net.Dialer's DialContext.
func (Machine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// Claim does nothing, because every user shares the machine's ports.
func (Machine) Claim(int) {}

// Open does nothing, because all ports are open.
func (Machine) Open(int) {}

// Taken tells whether a program on the machine listens on the port.
func (Machine) Taken(port int) bool { return takenOnMachine(port) }

// Process is the id of this process.
func (Machine) Process() int { return os.Getpid() }

var (
	_ Loopback = Machine{}
	_ Loopback = (*Network)(nil)
)
