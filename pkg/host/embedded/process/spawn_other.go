//go:build !linux

package process

import (
	"net/netip"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

var errUnsupported = diag.Errorf("use --host kind", "supervised processes need Linux, this is %s", runtime.GOOS)

// OnSpawner runs f.
func OnSpawner(f func()) { f() }

func spawn(*exec.Cmd) (Identity, error) { return Identity{}, errUnsupported }

func startAttached(*exec.Cmd) error { return errUnsupported }

func awaitEnd(int) {}

func signalGroup(int, syscall.Signal) {}

func killGroup(int) {}

func find(int) (Identity, error) { return Identity{}, errUnsupported }

func (Identity) kill() error { return errUnsupported }

func leftOf(Identity, string) ([]Identity, error) { return nil, nil }

// Listener tells whether a program listens on a TCP port, and which one.
func Listener(int, ...int) (Identity, string, bool) { return Identity{}, "", false }

// Listening returns the addresses on which the process waits for TCP connections.
func (Identity) Listening() []netip.AddrPort { return nil }

// Listens tells whether the process has a TCP socket that listens on port, on any address.
func (Identity) Listens(int) bool { return false }
