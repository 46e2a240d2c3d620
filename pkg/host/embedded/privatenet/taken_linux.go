package privatenet

import (
	"errors"

	"golang.org/x/sys/unix"
)

func takenOnMachine(port int) bool { return taken(port, unix.Socket) }

// taken tells whether somebody listens on a port in the network that sockets come from. It binds a socket there and never listens: whoever
// starts a child meanwhile gives it a copy of all sockets, which it has until its program is loaded. A copy of one that listens would make the
// next look, and the program that the port is kept for, take it for somebody else's.
func taken(port int, socket func(domain, kind, protocol int) (int, error)) bool {
	for _, at := range []unix.Sockaddr{
		&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}},
		&unix.SockaddrInet4{Port: port},
		&unix.SockaddrInet6{Port: port},
	} {
		if errors.Is(tryBind(at, socket), unix.EADDRINUSE) { // other errors say nothing: a machine may have no IPv6
			return true
		}
	}
	return false
}

func tryBind(at unix.Sockaddr, socket func(domain, kind, protocol int) (int, error)) error {
	domain := unix.AF_INET
	if _, is := at.(*unix.SockaddrInet6); is {
		domain = unix.AF_INET6
	}
	fd, err := socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it that could be lost
	// As Go's net package does before it listens: only sockets that listen are in each other's way then.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if domain == unix.AF_INET6 { // and IPv4 with it
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return err
		}
	}
	return unix.Bind(fd, at)
}
