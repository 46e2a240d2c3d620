package privatenet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is a bind or connect that waits for an answer.
type call struct {
	*notification
	broker *broker
}

func (c *call) binds() bool { return c.Call == unix.SYS_BIND }

// take does the call in the private network, if the call belongs there. If not, done is false, and the kernel does the call.
func (n *Network) take(c *call) (errno syscall.Errno, done bool) {
	raw, at, ok := c.address()
	port := int(at.Port())
	switch {
	case !ok:
		return 0, false
	case c.binds() && port == 0: // the local end of an outgoing connection, as a rule
		return 0, false
	case c.binds() && n.open(port) && !at.Addr().IsUnspecified():
		return 0, false
	case !c.binds() && !n.private(port):
		return 0, false
	}
	theirs, err := c.socket()
	if err != nil {
		n.leave(c, at, err)
		return 0, false
	}
	defer func() { _ = unix.Close(theirs) }() // nothing was written to it that could be lost
	if !isTCP(theirs) {
		return 0, false
	}
	if c.binds() && n.open(port) {
		return n.narrow(theirs, port), true
	}
	ours, err := n.twin(theirs)
	if err != nil {
		n.options.Log("private network: %v", err)
		return syscall.ENETDOWN, true // fail rather than listen in the machine's network
	}
	defer func() { _ = unix.Close(ours) }() // nothing was written to it that could be lost
	number := uintptr(unix.SYS_CONNECT)
	if c.binds() {
		number = unix.SYS_BIND
	}
	//nolint:gosec // as the kernel wants it
	_, _, errno = unix.Syscall(number, uintptr(ours), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	if errno != 0 && errno != unix.EINPROGRESS {
		return errno, true
	}
	if c.binds() {
		n.Claim(port)
	}
	if err := c.replace(ours); err != nil && !errors.Is(err, unix.ENOENT) { // the caller may have ended
		n.options.Log("private network: give process %d its socket: %v", c.Thread, err)
		return syscall.EIO, true
	}
	return errno, true
}

// narrow binds a socket to the machine's loopback instead of all addresses.
func (n *Network) narrow(theirs, port int) syscall.Errno {
	var at unix.Sockaddr = &unix.SockaddrInet4{Port: port, Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1}).As4()}
	domain, err := unix.GetsockoptInt(theirs, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && domain == unix.AF_INET6 {
		at = &unix.SockaddrInet6{Port: port, Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
		if only, err := unix.GetsockoptInt(theirs, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY); err == nil && only != 0 {
			at = &unix.SockaddrInet6{Port: port, Addr: netip.IPv6Loopback().As16()}
		}
	}
	if err == nil {
		err = unix.Bind(theirs, at)
	}
	var errno syscall.Errno
	if err != nil && !errors.As(err, &errno) {
		errno = syscall.EIO
	}
	return errno
}

// leave logs a call that the kernel does in the machine's network, although it should be private.
func (n *Network) leave(c *call, at netip.AddrPort, err error) {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EBADF) {
		return // the process has ended, or the descriptor is no socket
	}
	n.options.Log("what process %d does at %s stays in the machine's network: %v", c.Thread, at, err)
}

// address reads the call's address. ok is false unless it is a loopback address or the address for all interfaces.
func (c *call) address() (raw []byte, at netip.AddrPort, ok bool) {
	length := c.Arguments[2]
	if length < unix.SizeofSockaddrInet4 || length > unix.SizeofSockaddrAny {
		return nil, at, false
	}
	raw = make([]byte, length)
	local := []unix.Iovec{{Base: &raw[0]}}
	local[0].SetLen(len(raw))
	remote := []unix.RemoteIovec{{Base: uintptr(c.Arguments[1]), Len: len(raw)}}
	read, err := unix.ProcessVMReadv(int(c.Thread), local, remote, 0)
	if err != nil || read != len(raw) || !c.valid() {
		return nil, at, false
	}
	at, ok = parseAddress(raw)
	return raw, at, ok && (at.Addr().IsLoopback() || at.Addr().IsUnspecified())
}

// parseAddress reads a struct sockaddr_in or sockaddr_in6.
func parseAddress(raw []byte) (at netip.AddrPort, ok bool) {
	const port, address4, address6 = 2, 4, 8
	var ip netip.Addr
	switch family := binary.NativeEndian.Uint16(raw); {
	case family == unix.AF_INET && len(raw) >= unix.SizeofSockaddrInet4:
		ip, ok = netip.AddrFromSlice(raw[address4 : address4+4])
	case family == unix.AF_INET6 && len(raw) >= unix.SizeofSockaddrInet6:
		ip, ok = netip.AddrFromSlice(raw[address6 : address6+16])
	}
	if !ok {
		return at, false
	}
	return netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(raw[port:])), true
}

// valid tells whether the call still waits. If not, another thread may have the caller's number.
func (c *call) valid() bool {
	id := c.ID
	return ioctl(c.broker.fd, ioctlValid, unsafe.Pointer(&id)) == nil //nolint:gosec // as the kernel wants it
}

// socket returns a duplicate of the call's socket for this process.
func (c *call) socket() (int, error) {
	pid, err := c.process()
	if err != nil {
		return -1, err
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, os.NewSyscallError("pidfd_open", err)
	}
	defer func() { _ = unix.Close(handle) }() // nothing was written to it that could be lost
	if !c.valid() {
		return -1, unix.ESRCH
	}
	fd, err := unix.PidfdGetfd(handle, int(int32(c.Arguments[0])), 0) //nolint:gosec // the kernel takes the lower half
	return fd, os.NewSyscallError("pidfd_getfd", err)
}

// process is the id of the process that the calling thread belongs to.
func (c *call) process() (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Thread))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(raw) {
		if pid, ok := bytes.CutPrefix(line, []byte("Tgid:")); ok {
			return strconv.Atoi(string(bytes.TrimSpace(pid)))
		}
	}
	return 0, unix.ESRCH
}

func isTCP(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	protocol, protocolErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return errors.Join(err, protocolErr) == nil && kind == unix.SOCK_STREAM &&
		(protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_MPTCP)
}

// kept are the socket options that change the effect of bind.
var kept = []struct{ level, option int }{
	{unix.SOL_SOCKET, unix.SO_REUSEADDR}, {unix.SOL_SOCKET, unix.SO_REUSEPORT}, {unix.IPPROTO_IPV6, unix.IPV6_V6ONLY},
}

// twin makes a socket in the private network, with the type and options of theirs, which is a child's socket. The new socket is neither
// bound nor connected.
func (n *Network) twin(theirs int) (int, error) {
	domain, err := unix.GetsockoptInt(theirs, unix.SOL_SOCKET, unix.SO_DOMAIN)
	flags, flagsErr := unix.FcntlInt(uintptr(theirs), unix.F_GETFL, 0)
	if err := errors.Join(err, flagsErr); err != nil {
		return -1, err
	}
	ours, err := n.helper.socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags&unix.O_NONBLOCK, unix.IPPROTO_TCP)
	if err != nil {
		return -1, err
	}
	for _, each := range kept {
		if each.level == unix.IPPROTO_IPV6 && domain != unix.AF_INET6 {
			continue
		}
		value, err := unix.GetsockoptInt(theirs, each.level, each.option)
		if err == nil {
			err = unix.SetsockoptInt(ours, each.level, each.option, value)
		}
		if err != nil {
			return -1, errors.Join(os.NewSyscallError("setsockopt", err), unix.Close(ours))
		}
	}
	return ours, nil
}

// replace puts the socket ours in the place of the call's socket, in the calling process. It is closed on exec, as sockets of Go programs
// are.
func (c *call) replace(ours int) error {
	r := replacement{
		//nolint:gosec // the kernel takes the lower half
		ID: c.ID, Flags: unix.SECCOMP_ADDFD_FLAG_SETFD, Source: uint32(ours), Target: uint32(c.Arguments[0]),
		About: unix.O_CLOEXEC,
	}
	return ioctl(c.broker.fd, ioctlReplace, unsafe.Pointer(&r)) //nolint:gosec // as the kernel wants it
}
