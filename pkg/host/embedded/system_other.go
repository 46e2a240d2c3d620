//go:build !linux

package embedded

import (
	"errors"
	"os/exec"
)

const supported = false

func detach(*exec.Cmd) {}

func keepPrivate() {}

func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }
