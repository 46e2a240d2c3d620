package privatenet

import (
	"errors"

	"golang.org/x/sys/unix"
)

func takenOnMachine(port int) bool { return taken(port, unix.Socket) }

// taken tells whether a program listens on a port, in the network in which socket makes sockets. It binds a socket to the port and does not
// listen. A child that starts at that moment holds copies of all sockets until exec. A copy of a listening socket would look like another
// program that has the port.
func taken(port int, socket func(domain, kind, protocol int) (int, error)) bool {
	for _, at := range []unix.Sockaddr{
		&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}},
		&unix.SockaddrInet4{Port: port},
		&unix.SockaddrInet6{Port: port},
	} {
		if errors.Is(tryBind(at, socket), unix.EADDRINUSE) { // other errors do not mean "taken": a machine may lack IPv6
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
	// Go's net package sets this option, too, before it listens. With it only a listening socket makes bind fail.
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
