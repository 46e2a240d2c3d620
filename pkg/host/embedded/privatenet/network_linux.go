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

// Network is the private loopback of the children that this process starts while it is there.
type Network struct {
	options Options
	helper  *helper

	mu    sync.Mutex
	ports map[int]bool // true: claimed, or bound to; false: opened
}

// Start makes the network. Children that are started from now on, through package process, listen in it; those of before do not. There
// may be one at a time. The error has ErrUnsupported in its tree where the machine does not allow it; then all is as it was.
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

// try binds a socket to a port that is taken on the machine, as a child would. In the private network it is free.
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
		return nil // and we cannot tell
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

// Taken implements Loopback. What listens on the machine is in nobody's way, unless the port is one that stays there.
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

// open tells whether what is bound to a port stays in the machine's network.
func (n *Network) open(port int) bool {
	n.mu.Lock()
	private, known := n.ports[port]
	n.mu.Unlock()
	return (known && !private) || (n.options.Open != nil && n.options.Open(port))
}

// private tells whether a port of loopback is one of the children's.
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

// inside is the private address that an address stands for.
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

// dialTime bounds a connection to loopback, which is there at once or not at all.
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

// Lost is closed when the helper has ended without being asked to. What listens goes on; nobody can listen anew or connect, so all
// children have to be started again, in a new network.
func (n *Network) Lost() <-chan struct{} { return n.helper.lost }

// Close ends the network. Children that listen in it still go on there, unreached.
func (n *Network) Close() error {
	if b, err := theBroker(); err == nil {
		b.current.CompareAndSwap(n, nil)
	}
	return n.helper.close()
}
