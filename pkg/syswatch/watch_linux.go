//go:build amd64 || arm64

package syswatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher answers the kernel's questions about a child.
type watcher struct {
	listener int
	self     string // this program

	mu     sync.Mutex
	folder string // what may be read
	did    []string
}

// question is struct seccomp_notif, answer struct seccomp_notif_resp.
type question struct {
	id          uint64
	pid, flags  uint32
	number      int32
	arch        uint32
	instruction uint64
	args        [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

const (
	receive = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	send    = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	valid   = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	proceed = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

// serve answers until the last process under the filter is gone.
func (w *watcher) serve() error {
	defer func() { _ = unix.Close(w.listener) }()
	for {
		fds := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return fmt.Errorf("wait for system calls: %w", err)
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return nil
		}
		var q question
		if err := w.ioctl(receive, unsafe.Pointer(&q)); err != nil {
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
				continue // it was killed meanwhile
			}
			return fmt.Errorf("receive a system call: %w", err)
		}
		a := answer{id: q.id, flags: proceed}
		if what := w.judge(&q); what != "" && w.ioctl(valid, unsafe.Pointer(&q.id)) == nil {
			w.mu.Lock()
			w.did = append(w.did, what)
			w.mu.Unlock()
			a = answer{id: q.id, errno: -int32(unix.EACCES)}
		}
		if err := w.ioctl(send, unsafe.Pointer(&a)); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("answer a system call: %w", err)
		}
	}
}

func (w *watcher) ioctl(request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// judge describes a forbidden call; it returns "" for an allowed call.
func (w *watcher) judge(q *question) string {
	number := int(q.number)
	switch number {
	case unix.SYS_SOCKET:
		return fmt.Sprintf("opened a socket of family %d", q.args[0])
	case unix.SYS_CONNECT:
		return "connected a socket"
	case unix.SYS_IO_URING_SETUP, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV:
		return fmt.Sprintf("made the system call %d", number)
	}
	from, at := int32(unix.AT_FDCWD), 0
	if !pathFirst(number) {
		from, at = int32(q.args[0]), 1
	}
	name, err := w.path(q.pid, from, q.args[at])
	if err != nil {
		return fmt.Sprintf("made the system call %d with a path that cannot be read: %v", number, err)
	}
	flags, opens := openFlags(number, q.args)
	if number == unix.SYS_OPENAT2 {
		var beneath bool
		if flags, beneath, err = w.how(q); err != nil {
			return fmt.Sprintf("opened %s in a way that cannot be read: %v", name, err)
		}
		if opens = true; beneath { // the kernel lets it lead nowhere else
			name, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", q.pid, from))
		}
	}
	switch {
	case number == unix.SYS_EXECVE || number == unix.SYS_EXECVEAT:
		return w.judgeProgram(name, q.pid)
	case opens && flags&(unix.O_ACCMODE|unix.O_CREAT|unix.O_TRUNC) == 0:
		if actual := w.actual(name, q.pid, flags&unix.O_NOFOLLOW == 0); !w.mayRead(actual) {
			return "read " + actual
		}
		return ""
	case name == "/dev/null":
		return ""
	}
	return fmt.Sprintf("wrote %s (system call %d)", name, number)
}

// judgeProgram allows the start of this same program, and of no other. The child starts it to begin its second life, and to make workers
// for its work.
func (w *watcher) judgeProgram(name string, pid uint32) string {
	if actual := w.actual(name, pid, true); actual != w.self {
		return "started " + actual
	}
	return ""
}

// how are the arguments of openat2: its flags, from the memory of the child, and whether the file must be beneath the folder.
func (w *watcher) how(q *question) (flags uint64, beneath bool, err error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", q.pid))
	if err != nil {
		return 0, false, err
	}
	defer memory.Close()
	var how [24]byte // flags, mode, resolve
	if _, err := memory.ReadAt(how[:], int64(q.args[2])); err != nil {
		return 0, false, err
	}
	return binary.NativeEndian.Uint64(how[:]), binary.NativeEndian.Uint64(how[16:])&unix.RESOLVE_BENEATH != 0, nil
}

// path is that in the memory of the child, made absolute.
func (w *watcher) path(pid uint32, from int32, address uint64) (string, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return "", err
	}
	defer memory.Close()
	text := make([]byte, unix.PathMax)
	n, err := memory.ReadAt(text, int64(address))
	end := bytes.IndexByte(text[:n], 0)
	if end < 0 {
		return "", errors.Join(errors.New("it has no end"), err, io.ErrUnexpectedEOF)
	}
	name := string(text[:end])
	if filepath.IsAbs(name) {
		return name, nil
	}
	base := fmt.Sprintf("/proc/%d/cwd", pid)
	if from != unix.AT_FDCWD {
		base = fmt.Sprintf("/proc/%d/fd/%d", pid, from)
	}
	folder, err := os.Readlink(base)
	if err != nil {
		return "", err
	}
	return folder + "/" + name, nil
}

// actual is the path without symbolic links. If the file does not exist, actual is the path of its folder without symbolic links, with the
// name of the file, as far as that is possible.
func (w *watcher) actual(name string, pid uint32, follow bool) string {
	for _, self := range []string{"/proc/self/", "/proc/thread-self/"} {
		if rest, ok := strings.CutPrefix(name, self); ok {
			name = fmt.Sprintf("/proc/%d/%s", pid, rest)
		}
	}
	if follow {
		if actual, err := filepath.EvalSymlinks(name); err == nil {
			return actual
		}
	}
	dir, last := filepath.Split(filepath.Clean(name))
	if actual, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(actual, last)
	}
	return filepath.Clean(name)
}

// Every program of Go, or of C, reads these as it starts, and to know the time.
var (
	ofEverybody = []string{
		"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/dev/null", "/dev/urandom",
		"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
	}
	foldersOfEverybody = []string{
		"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/sys/fs/cgroup",
		"/sys/devices/system/cpu",
	}
	ofTheProcess = []string{"cgroup", "mountinfo", "maps", "auxv", "exe", "stat", "status", "task"}
)

// userFolders is a file that a library for the user's folders reads in each process that links the library, whatever the process does.
const userFolders = "user-dirs.dirs"

func (w *watcher) mayRead(name string) bool {
	w.mu.Lock()
	folder := w.folder
	w.mu.Unlock()
	if name == w.self || filepath.Base(name) == userFolders || folder != "" && within(name, folder) || slices.Contains(ofEverybody, name) {
		return true
	}
	if rest, ok := strings.CutPrefix(name, "/proc/"); ok {
		pid, file, _ := strings.Cut(rest, "/")
		return strings.Trim(pid, "0123456789") == "" && slices.Contains(ofTheProcess, file)
	}
	return slices.ContainsFunc(foldersOfEverybody, func(dir string) bool { return within(name, dir) })
}

func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
