package privatenet

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// broker answers the filtered system calls of all children. The filter can never be removed, so a process has one broker.
type broker struct {
	fd      int // the kernel delivers the filtered calls here
	current atomic.Pointer[Network]
}

// theBroker installs the filter at its first call.
var theBroker = sync.OnceValues(func() (*broker, error) {
	b := &broker{}
	var err error
	process.OnSpawner(func() { b.fd, err = filterCalls() })
	if err != nil {
		return nil, err
	}
	go b.serve()
	return b, nil
})

// architectures are the architectures with a known filter, and the kernel's numbers for them.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filterCalls installs the filter on the calling thread. bind and connect of this thread, and of all programs that it starts, then wait for
// an answer. The result is the file descriptor that delivers these calls.
func filterCalls() (int, error) {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		return -1, fmt.Errorf("not on %s: %w", runtime.GOARCH, errors.ErrUnsupported)
	}
	if err := checkSizes(); err != nil {
		return -1, err
	}
	const number, architectureAt = 0, 4 // in struct seccomp_data
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	program := []unix.SockFilter{
		load(architectureAt), equal(architecture, 0, 3),
		load(number), equal(unix.SYS_BIND, 2, 0), equal(unix.SYS_CONNECT, 1, 0),
		end(unix.SECCOMP_RET_ALLOW),
		end(unix.SECCOMP_RET_USER_NOTIF),
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]} //nolint:gosec // a handful
	// Without root, the kernel accepts a filter only on a thread that can gain no privileges.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("prctl: %w", err)
	}
	// With WAIT_KILLABLE_RECV only a fatal signal interrupts a call that the broker has received. Older kernels lack the flag.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0} {
		//nolint:gosec // as the kernel wants it
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags,
			uintptr(unsafe.Pointer(&filter)))
		switch errno {
		case 0:
			unix.CloseOnExec(int(fd))
			return int(fd), nil
		case unix.EINVAL:
			continue
		}
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return -1, fmt.Errorf("seccomp: %w", unix.EINVAL)
}

// The kernel's structs for such calls: seccomp_notif, seccomp_notif_resp and seccomp_notif_addfd.
type (
	notification struct {
		ID           uint64
		Thread       uint32
		Flags        uint32
		Call         int32
		Architecture uint32
		Instruction  uint64
		Arguments    [6]uint64
	}
	response struct {
		ID    uint64
		Value int64
		Error int32
		Flags uint32
	}
	replacement struct {
		ID                           uint64
		Flags, Source, Target, About uint32
	}
)

const (
	ioctlReplace = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
	ioctlValid   = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
)

// checkSizes asks the kernel whether its structs have the sizes of the structs here.
func checkSizes() error {
	var sizes struct{ Notification, Response, Data uint16 }
	//nolint:gosec // as the kernel wants it
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if int(sizes.Notification) != int(unsafe.Sizeof(notification{})) || int(sizes.Response) != int(unsafe.Sizeof(response{})) {
		return fmt.Errorf("the kernel's notifications have %d and %d bytes: %w", sizes.Notification, sizes.Response, errors.ErrUnsupported)
	}
	return nil
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
			continue
		}
		return errno
	}
}

// serve receives and answers calls until the process ends.
func (b *broker) serve() {
	for {
		n := &notification{}
		err := ioctl(b.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)) //nolint:gosec // as the kernel wants it
		if errors.Is(err, unix.ENOENT) {
			continue // the caller was killed meanwhile
		}
		if err != nil {
			return
		}
		go b.answer(n)
	}
}

// answer lets the kernel do the call, or returns a result in its place.
func (b *broker) answer(n *notification) {
	r := response{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if network := b.current.Load(); network != nil {
		if errno, done := network.take(&call{broker: b, notification: n}); done {
			r.Error, r.Flags = -int32(errno), 0 //nolint:gosec // a small number
		}
	}
	_ = ioctl(b.fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) //nolint:gosec // as the kernel wants it; who asked may be gone
}
