//go:build !linux

package embedded

import "os/exec"

const supported = false

func detach(*exec.Cmd) {}
