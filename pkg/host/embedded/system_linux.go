package embedded

import (
	"os/exec"
	"syscall"
)

const supported = true

// detach makes cmd outlive us and our terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
