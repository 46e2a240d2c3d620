//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidden lists the system calls that rendering never needs: calls that start processes, use the network, reach into other processes, or
// open a way around this list.
var forbidden = append([]uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_IO_URING_SETUP, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_MEMFD_CREATE,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_FSOPEN, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_MKNODAT, unix.SYS_SETXATTR, unix.SYS_OPEN_BY_HANDLE_AT,
}, forbiddenHere...)

// filterCalls makes the kernel refuse the forbidden calls from now on, in all threads. It does nothing if the kernel has no filters.
func filterCalls() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	program := filter()
	//nolint:gosec // it is short
	code := unix.SockFprog{
		Len:    uint16(len(program)),
		Filter: &program[0],
	}
	//nolint:gosec // as the kernel wants it
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&code)))
	runtime.KeepAlive(program)
	if errno != 0 && !errors.Is(errno, unix.ENOSYS) && !errors.Is(errno, unix.EINVAL) {
		return fmt.Errorf("limit system calls: %w", errno)
	}
	return nil
}

// The offsets of the data that the kernel passes to a filter: the number of the call, the architecture, the instruction, the arguments.
const (
	offsetNumber, offsetArch, offsetFirst = 0, 4, 16
	load                                  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal                                 = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atLeast                               = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	hasBits                               = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	give                                  = unix.BPF_RET | unix.BPF_K
	// otherNumbers is the first call number of another calling convention (x32).
	otherNumbers = 0x40000000
)

// filter refuses the forbidden calls, calls by another convention, and calls that make a process instead of a thread. A filter cannot see
// the flags of clone3. So the filter answers that clone3 does not exist, and C libraries use clone instead.
func filter() []unix.SockFilter {
	refuse := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	allow := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW}
	f := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: architecture, Jt: 1},
		refuse,
		{Code: load, K: offsetNumber},
		{Code: atLeast, K: otherNumbers, Jf: 1},
		refuse,
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		{Code: load, K: offsetFirst},
		{Code: hasBits, K: unix.CLONE_THREAD, Jt: 1},
		refuse,
		allow,
	}
	for _, call := range slices.Compact(slices.Sorted(slices.Values(forbidden))) {
		f = append(f, unix.SockFilter{Code: equal, K: call, Jf: 1}, refuse)
	}
	return append(f, allow)
}
