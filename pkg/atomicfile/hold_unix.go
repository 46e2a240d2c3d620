//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hold marks a temporary file, or folder, as that of a process that lives: the kernel takes the mark away with the process. It returns
// false where somebody who sweeps has it. A file system that knows no such locks says nothing against it; nothing is swept there.
func hold(f *os.File) bool {
	return !errors.Is(flock(f, syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// heldByOthers takes an open folder for this process, and tells whether another process has it.
func heldByOthers(f *os.File) bool {
	return errors.Is(flock(f, syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// abandoned tells whether nobody holds a temporary file, and keeps it from those who would while f is open.
func abandoned(f *os.File) bool { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil }

// mine tells whether a file belongs to this user: where many may write, others may have made what looks like ours.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func flock(f *os.File, how int) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = raw.Control(func(fd uintptr) {
		for {
			if locked = syscall.Flock(int(fd), how); !errors.Is(locked, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, locked)
}

// holdsOpen: what is open can be renamed, so a file is held until it is in its place.
const holdsOpen = true
