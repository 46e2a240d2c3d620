//go:build unix

package testprograms

import (
	"os/exec"
	"syscall"
)

// endTogether lets a command that is cancelled take along what it has started: go run has a builder, and that has compilers.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
