//go:build windows

package gitserve

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// ownGroup has nothing to do here: git's children end when their pipes break.
func ownGroup(*exec.Cmd) {}

// detach makes cmd outlive us and our console.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// terminate ends a process: there is no asking one without a console.
func terminate(p *os.Process) error { return p.Kill() }

// errAddressInUse is the error of binding an address that another program has.
const errAddressInUse = windows.WSAEADDRINUSE
