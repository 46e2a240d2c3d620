package privatenet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// helperVariable marks a process as the helper. helperSocket is the file descriptor on which the helper is asked.
const (
	helperVariable = "FLEETCTL_PRIVATE_NETWORK_HELPER"
	helperSocket   = 3
)

// helperTime bounds one question to the helper. It answers in microseconds; a machine that swaps may need a while.
const helperTime = 30 * time.Second

// helper is the process in the network namespace.
type helper struct {
	cmd  *exec.Cmd
	lost chan struct{}

	mu     sync.Mutex // held during a question and its answer
	conn   int
	closed bool
}

// startHelper runs this program again, in a new network namespace.
func startHelper(ctx context.Context) (*helper, error) {
	if os.Geteuid() == 0 {
		if h, err := startHelperWith(ctx, rootNamespace()); err == nil {
			return h, nil
		}
	}
	return startHelperWith(ctx, userNamespace())
}

// rootNamespace makes a network namespace, which takes the rights of root.
func rootNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
}

// userNamespace makes a network namespace in a user namespace, which takes no rights. The helper is root in the namespace, as it has to
// be to raise loopback, and this user outside.
func userNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

func startHelperWith(ctx context.Context, attributes *syscall.SysProcAttr) (*helper, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper")
	defer theirs.Close()
	limit := unix.NsecToTimeval(helperTime.Nanoseconds())
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt", err), unix.Close(pair[0]))
	}
	var said bytes.Buffer
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:gosec,noctx // this program; it ends with this process
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), helperVariable+"=1", "GOMAXPROCS=1")
	cmd.Dir, cmd.ExtraFiles, cmd.Stderr, cmd.WaitDelay = "/", []*os.File{theirs}, &said, time.Second
	cmd.SysProcAttr = attributes
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	process.OnSpawner(func() { err = cmd.Start() })
	if err != nil {
		return nil, errors.Join(err, unix.Close(pair[0]))
	}
	h := &helper{cmd: cmd, lost: make(chan struct{}), conn: pair[0]}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the helper never ends by itself; the error below quotes its output
		close(ended)
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.closed {
			close(h.lost)
		}
	}()
	// A first socket proves that the helper works.
	fd, err := h.socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Close(fd)
	}
	if err == nil && ctx.Err() == nil {
		return h, nil
	}
	err = errors.Join(err, context.Cause(ctx), h.close())
	<-ended
	return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
}

// A question is the three arguments of socket(2). The answer is an error number, with the socket attached if the number is 0.
const (
	word           = 4
	questionLength = 3 * word
)

// socket returns a new socket of the private network. It belongs to the caller.
func (h *helper) socket(domain, kind, protocol int) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return -1, net.ErrClosed
	}
	var question []byte
	for _, each := range []int{domain, kind, protocol} {
		question = binary.NativeEndian.AppendUint32(question, uint32(each)) //nolint:gosec // constants of the kernel
	}
	err := again(func() error { return unix.Sendmsg(h.conn, question, nil, nil, unix.MSG_NOSIGNAL) })
	if err != nil {
		return -1, h.broken(err)
	}
	errno, fd, err := receiveSocket(h.conn)
	if err != nil {
		return -1, h.broken(err)
	}
	if errno != 0 {
		return -1, os.NewSyscallError("socket", errno)
	}
	return fd, nil
}

// broken ends a helper that did not answer in time. Its late answer would be taken for the answer to the next question.
func (h *helper) broken(err error) error {
	_ = h.cmd.Process.Kill() // it may have ended already; either way it is lost
	return fmt.Errorf("ask the helper of the private network: %w", err)
}

func receiveSocket(conn int) (errno syscall.Errno, fd int, err error) {
	said, beside := make([]byte, word), make([]byte, unix.CmsgSpace(word))
	var n, m int
	err = again(func() (err error) {
		n, m, _, _, err = unix.Recvmsg(conn, said, beside, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err != nil {
		return 0, -1, os.NewSyscallError("recvmsg", err)
	}
	if n != word {
		return 0, -1, errors.New("it has ended")
	}
	if errno := syscall.Errno(binary.NativeEndian.Uint32(said)); errno != 0 {
		return errno, -1, nil
	}
	messages, err := unix.ParseSocketControlMessage(beside[:m])
	if err != nil {
		return 0, -1, fmt.Errorf("it sent no socket: %w", err)
	}
	if len(messages) != 1 {
		return 0, -1, fmt.Errorf("it sent no socket: %s", plain.Count(len(messages), "message"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, -1, fmt.Errorf("it sent no socket: %w", err)
	}
	if len(fds) != 1 {
		return 0, -1, fmt.Errorf("it sent %s", plain.Count(len(fds), "socket"))
	}
	return 0, fds[0], nil
}

// close ends the helper. It may be called twice.
func (h *helper) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	_ = h.cmd.Process.Kill() // it may have ended already
	return unix.Close(h.conn)
}

// again repeats a system call until no signal interrupts it.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// IsHelper tells whether this process was started as the helper. If so, it has to call Help and nothing else.
func IsHelper() bool { return os.Getenv(helperVariable) != "" }

// Help makes sockets for the parent process until the parent ends.
func Help() error {
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("raise loopback: %w", err)
	}
	// Outgoing connections get ports from above the ports of listeners, so that they never take a listener's port. This is best effort: the
	// file may not be writable.
	_ = os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("61000 65535"), 0)
	question := make([]byte, questionLength)
	for {
		var n int
		err := again(func() (err error) {
			n, _, _, _, err = unix.Recvmsg(helperSocket, question, nil, unix.MSG_CMSG_CLOEXEC)
			return err
		})
		if err != nil || n != questionLength {
			return err // the parent has ended
		}
		if err := makeSocket(question); err != nil {
			return err
		}
	}
}

func makeSocket(question []byte) error {
	asked := func(i int) int { return int(binary.NativeEndian.Uint32(question[i*word:])) }
	var said, beside []byte
	fd, err := unix.Socket(asked(0), asked(1), asked(2))
	var errno syscall.Errno
	if err == nil {
		defer func() { _ = unix.Close(fd) }() // nothing was written to it that could be lost
		beside = unix.UnixRights(fd)
	} else if !errors.As(err, &errno) {
		return err
	}
	said = binary.NativeEndian.AppendUint32(said, uint32(errno))
	return again(func() error { return unix.Sendmsg(helperSocket, said, beside, nil, unix.MSG_NOSIGNAL) })
}

// raiseLoopback gives the namespace its addresses.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it that could be lost
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("ioctl", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
}
