package embedded

import (
	"os/exec"
	"syscall"
)

const supported = true

// detach makes cmd outlive us and our terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// keepPrivate makes what this process and those that it starts write readable by their user alone, unless they say otherwise.
func keepPrivate() { syscall.Umask(0o077) }

// freeSpace is what we may still write to the disk that dir is on, in bytes.
func freeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(max(s.Bsize, 0)), nil
}
