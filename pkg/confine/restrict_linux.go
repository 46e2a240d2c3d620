package confine

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// confinements are the attributes to start a process with, best first: with a network namespace, which root has for the asking and others
// get in a user namespace of their own, where the system lets them; and without. In all of them it ends with its parent, and Ctrl-C is the
// parent's to hear.
func confinements() []*syscall.SysProcAttr {
	plain := func() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} }
	rooted, own := plain(), plain()
	rooted.Cloneflags = syscall.CLONE_NEWNET
	own.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	own.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	own.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	if os.Geteuid() == 0 {
		return []*syscall.SysProcAttr{rooted, own, plain()}
	}
	return []*syscall.SysProcAttr{own, plain()}
}

// killed says that the system ended a process, which it does where memory is short.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// restrict gives up every right that a task does not need. It leaves out restrictions that this kernel lacks. A restriction that the kernel
// has and refuses is an error.
func restrict(s *start) error {
	closeInherited()
	// Go can live with this limit of memory. It could not live with a limit of address space, because it reserves much more than it uses.
	if err := setLimit(unix.RLIMIT_DATA, uint64(s.Limits.Memory)); err != nil { //nolint:gosec // it is positive
		return fmt.Errorf("limit memory: %w", err)
	}
	if err := setLimit(unix.RLIMIT_CORE, 0); err != nil { // what is in memory does not get to the disk
		return fmt.Errorf("limit core dumps: %w", err)
	}
	rules := []landlock.Rule{}
	for _, name := range s.Read {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			rules = append(rules, landlock.ROFiles(name).IgnoreIfMissing())
		} else {
			rules = append(rules, landlock.RODirs(name).IgnoreIfMissing())
		}
	}
	for _, name := range s.Write {
		rules = append(rules, landlock.RWDirs(name).IgnoreIfMissing())
	}
	if err := landlock.V7.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("limit files: %w", err)
	}
	return filterCalls()
}

// closeInherited closes the files that the parent of fleetctl has left open, because no rule for files stops the use of an open file. The
// files of this process itself, such as its runtime's, stay open and are not inherited.
func closeInherited() {
	var open []int
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		for _, e := range entries {
			if fd, err := strconv.Atoi(e.Name()); err == nil {
				open = append(open, fd)
			}
		}
	} else { // without /proc: the usual numbers
		for fd := range 1024 {
			open = append(open, fd)
		}
	}
	for _, fd := range open {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && fd > syscall.Stderr && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

func setLimit(which int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(which, &now); err != nil {
		return err
	}
	most = min(most, now.Max)
	return unix.Setrlimit(which, &unix.Rlimit{Cur: most, Max: most})
}

// pipeSize is the largest size of a pipe that every user may set, in bytes.
const pipeSize = 1 << 20

// widen enlarges a pipe, so that its writer waits less often for its reader.
func widen(pipe *os.File) {
	_, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, pipeSize) // or it stays as it is
}
