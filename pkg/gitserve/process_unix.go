//go:build unix

package gitserve

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the end of cmd the end of the programs it has started as well.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// detach makes cmd outlive us and our terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks a process to end.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// errAddressInUse is the error of binding an address that another program has.
const errAddressInUse = syscall.EADDRINUSE
