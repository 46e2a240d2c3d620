// Package privatenet gives the children of this process a loopback of their own for what they listen on, so that other users of the
// machine do not reach it. It needs no root, no device and no program of others. It works on Linux.
//
// The children stay in the machine's network: whatever they ask for outside, names, registries, clouds, an engine's socket, a server on the
// machine's loopback, they reach as ever and at the kernel's own speed. Only two of their calls are looked at, bind and connect, which a
// seccomp filter stops until this process has answered them. A TCP socket that is bound to a port is put in the place of another one, of a
// network namespace with nothing but a loopback in it; one that is connected to such a port of loopback as well. The sockets of that
// namespace come from a helper, a process of this program in it. It moves no bytes.
//
// (A user-space network stack in front of a tap device does the other half: it has to carry all that goes out. It needs /dev/net/tun, which
// often is root's alone and is not there in containers, a second half outside, and ways for the machine's loopback in both directions.)
package privatenet

import (
	"context"
	"errors"
	"net"
	"os"
)

// ErrUnsupported is in the tree of Start's error where this machine does not let us: without seccomp's notifications or user namespaces.
var ErrUnsupported = errors.New("the machine does not allow it")

// Options of Start.
type Options struct {
	// Open tells ports that stay on the machine's loopback, besides those of Loopback's Open. nil is none.
	Open func(port int) bool
	// Log, if not nil, is told what could not be kept private.
	Log func(format string, args ...any)
}

// Loopback is what the children of this process listen on, and how it reaches them there.
type Loopback interface {
	// Dial is net.Dialer's DialContext, also to ports of the private loopback.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Claim says that a port of loopback is one of the children's whether one listens on it yet or not: what another user of the machine
	// listens on there meanwhile is never asked.
	Claim(port int)
	// Open says that a port stays on the machine's loopback, for whoever asks there. Programs that would listen on all of its addresses
	// listen on loopback.
	Open(port int)
	// Taken tells whether a child could not listen on a port, on loopback or everywhere, because somebody does already. It never keeps
	// one from listening itself.
	Taken(port int) bool
	// Process is one in the network that private ports are in, for process.Listener.
	Process() int
}

// Machine is the machine's own loopback, where nothing is private.
type Machine struct{}

// Dial is net.Dialer's DialContext.
func (Machine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// Claim does nothing: ports are everybody's.
func (Machine) Claim(int) {}

// Open does nothing: they are already.
func (Machine) Open(int) {}

// Taken tells whether somebody on the machine listens there.
func (Machine) Taken(port int) bool { return takenOnMachine(port) }

// Process is this one.
func (Machine) Process() int { return os.Getpid() }

var (
	_ Loopback = Machine{}
	_ Loopback = (*Network)(nil)
)
