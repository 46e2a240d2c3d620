package privatenet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// Network is the private loopback of the children that this process starts between Start and Close.
type Network struct {
	options Options
	helper  *helper

	mu    sync.Mutex
	ports map[int]bool // true: claimed, or bound to; false: opened
}

// Start makes the network. Children that package process starts from now on listen in it; earlier children do not. A process can have one
// network at a time. If the machine does not allow one, Start changes nothing, and the error has ErrUnsupported in its tree.
func Start(ctx context.Context, options Options) (_ *Network, err error) {
	if options.Log == nil {
		options.Log = func(string, ...any) {}
	}
	if err := mayTrace(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	b, err := theBroker()
	if err != nil {
		return nil, fmt.Errorf("%w: filter system calls: %w", ErrUnsupported, err)
	}
	h, err := startHelper(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: make a network namespace: %w", ErrUnsupported, err)
	}
	n := &Network{options: options, helper: h, ports: map[int]bool{}}
	if !b.current.CompareAndSwap(nil, n) {
		return nil, errors.Join(errors.New("there is a private network already"), h.close())
	}
	if err := n.try(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnsupported, err), n.Close())
	}
	return n, nil
}

// try binds a socket like a child to a port that is taken on the machine. The port is free in the private network, so success proves that
// the network works.
func (n *Network) try() error {
	taken, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // nothing to wait for
	if err != nil {
		return err
	}
	defer taken.Close()
	at, err := netip.ParseAddrPort(taken.Addr().String())
	if err != nil {
		return err
	}
	if n.open(int(at.Port())) {
		return nil // without a taken port there is nothing to prove
	}
	process.OnSpawner(func() {
		var fd int
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		err = errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}), unix.Close(fd))
	})
	n.forget(int(at.Port()))
	if err != nil {
		return fmt.Errorf("a socket was bound and stayed where it was: %w", err)
	}
	return nil
}

// Claim implements Loopback.
func (n *Network) Claim(port int) { n.set(port, true) }

// Open implements Loopback.
func (n *Network) Open(port int) { n.set(port, false) }

// Taken implements Loopback. A program on the machine's loopback takes only ports that stay there.
func (n *Network) Taken(port int) bool {
	if n.open(port) {
		return takenOnMachine(port)
	}
	return taken(port, n.helper.socket)
}

// Process implements Loopback.
func (n *Network) Process() int { return n.helper.cmd.Process.Pid }

func (n *Network) set(port int, private bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[port] = private
}

func (n *Network) forget(port int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ports, port)
}

// open tells whether a port stays in the machine's network.
func (n *Network) open(port int) bool {
	n.mu.Lock()
	private, known := n.ports[port]
	n.mu.Unlock()
	return (known && !private) || (n.options.Open != nil && n.options.Open(port))
}

// private tells whether a loopback port belongs to the children.
func (n *Network) private(port int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ports[port]
}

// Dial implements Loopback.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := n.inside(network, address)
	if !ok {
		return Machine{}.Dial(ctx, network, address)
	}
	conn, err := n.dial(ctx, to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	return conn, nil
}

// inside is the address in the private network for an address. ok is false if the address is not private.
func (n *Network) inside(network, address string) (to netip.AddrPort, ok bool) {
	host, text, err := net.SplitHostPort(address)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if errors.Join(err, portErr) != nil || (network != "tcp" && network != "tcp4" && network != "tcp6") || !n.private(int(port)) {
		return to, false
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	ip = ip.Unmap()
	return netip.AddrPortFrom(ip, uint16(port)), err == nil && ip.IsLoopback()
}

// dialTime bounds connecting to loopback, which succeeds or fails at once.
const dialTime = 10 * time.Second

func (n *Network) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	family, at := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if to.Addr().Is4() {
		family, at = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	fd, err := n.helper.socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "tcp")
	defer file.Close() // FileConn has its own
	limit := unix.NsecToTimeval(dialTime.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Connect(fd, at); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(file)
}

// Lost is closed when the helper has ended by itself. Sockets that listen go on, but no child can listen or connect any more. So all
// children have to be started again, in a new network.
func (n *Network) Lost() <-chan struct{} { return n.helper.lost }

// Close ends the network. Children that still listen in it go on, but nobody can reach them.
func (n *Network) Close() error {
	if b, err := theBroker(); err == nil {
		b.current.CompareAndSwap(n, nil)
	}
	return n.helper.close()
}
