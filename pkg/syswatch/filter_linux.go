//go:build amd64 || arm64

package syswatch

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These values tell in which of its two lives the child is: in the first life it puts itself under the filter, in the second it runs the
// code.
const (
	stageVariable = "SYSWATCH_STAGE"
	confining     = "1"
	confined      = "2"
)

// Descriptors of the child, beside the standard ones.
const (
	listenerSocket = 3 // the first life sends the kernel's questions over it
	answers        = 4 // the second life writes a line for each folder that it is through with
)

// confine puts this thread and its descendants under the filter, and hands the kernel's questions to the parent. Then it starts this
// program again in the same process, so that all threads of the second life are under the filter.
func confine() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	listener, err := install(filter())
	if err != nil {
		return fmt.Errorf("ask for notifications of system calls, which Linux has since 5.5: %w", err)
	}
	if err := unix.Sendmsg(listenerSocket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("send the notifications: %w", err)
	}
	if err := os.Setenv(stageVariable, confined); err != nil {
		return err
	}
	unix.CloseOnExec(listenerSocket)
	return fmt.Errorf("start again: %w", unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}

func install(program []unix.SockFilter) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var errno unix.Errno
	// The second way is that of kernels before 5.19.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | waitKillable, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
		var fd uintptr
		if fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog))); errno == 0 {
			return int(fd), nil
		}
	}
	return 0, errno
}

// waitKillable lets only a signal that kills end a call that was asked about: others would have it asked again.
const waitKillable = 1 << 5

// filter asks about the calls that are watched, refuses those of another architecture, and lets all others pass.
func filter() []unix.SockFilter {
	numbers := append(watchedEverywhere(), watchedHere()...)
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	program := []unix.SockFilter{load(4), equal(auditArch, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS), load(0)}
	for i, number := range numbers {
		program = append(program, equal(uint32(number), uint8(len(numbers)-i), 0))
	}
	return append(program, answer(unix.SECCOMP_RET_ALLOW), answer(unix.SECCOMP_RET_USER_NOTIF))
}

// watchedEverywhere are the calls that start programs, reach for the network, and open or change files.
func watchedEverywhere() []int {
	return []int{
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_IO_URING_SETUP, unix.SYS_OPENAT, unix.SYS_OPENAT2,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_RENAMEAT2, unix.SYS_SYMLINKAT,
		unix.SYS_LINKAT, unix.SYS_MKNODAT,
		unix.SYS_TRUNCATE, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV,
	}
}
