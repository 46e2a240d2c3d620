package embedded

import (
	"os/exec"
	"syscall"
)

const supported = true

// detach makes cmd outlive this process and its terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// keepPrivate sets the umask of this process and its children so that only their user can read new files.
func keepPrivate() { syscall.Umask(0o077) }

// freeSpace is how many bytes this user can still write to the file system of dir.
func freeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(max(s.Bsize, 0)), nil
}
