//go:build !linux

package process

import (
	"os/exec"
	"runtime"
	"syscall"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

var errUnsupported = diag.Errorf("use --host kind", "supervised processes need Linux, this is %s", runtime.GOOS)

func spawn(*exec.Cmd) (Identity, error) { return Identity{}, errUnsupported }

func startAttached(*exec.Cmd) error { return errUnsupported }

func awaitEnd(int) {}

func signalGroup(int, syscall.Signal) {}

func killGroup(int) {}

func find(int) (Identity, error) { return Identity{}, errUnsupported }

func (Identity) kill() error { return errUnsupported }

func leftOf(Identity, string) ([]Identity, error) { return nil, nil }

// Listener finds the process that listens on a TCP port.
func Listener(int) (Identity, string, bool) { return Identity{}, "", false }

// Listens tells whether the process has a TCP socket that listens on port, on any address.
func (Identity) Listens(int) bool { return false }
