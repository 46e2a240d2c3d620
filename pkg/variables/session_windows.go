package variables

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// ownSession keeps a command from the console. Windows has no way to end the programs that the command has started.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS, HideWindow: true}
}
