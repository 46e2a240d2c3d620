//go:build unix

package variables

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownSession keeps a command from the terminal: the command would ask in the middle of fleetctl's own progress, and wait for an answer
// until its time is up. The end of the command is then also the end of the programs that it has started.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
