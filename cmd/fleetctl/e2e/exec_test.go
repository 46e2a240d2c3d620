//go:build e2e

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHostExec runs commands with a management cluster of their own: it is gone with them, however they end.
func TestHostExec(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "exec")
	kubectl := filepath.Join(os.Getenv("FLEETCTL_E2E_PROGRAMS"), "kubectl")
	args := func(command ...string) []string {
		return append([]string{"host", "exec", "--bundle", os.Getenv(envBundle), "--"}, command...)
	}
	if out := f.ok(args(kubectl, "get", "namespaces", "-o", "name")...).stdout; !strings.Contains(out, "namespace/kube-system") {
		t.Errorf("the command printed %q", out)
	}
	f.nothingOfExec(0)
	f.fails(7, []string{"sh: exit status 7"}, args("/bin/sh", "-c", "exit 7")...)
	f.nothingOfExec(0)
	f.fails(1, []string{"no-such-program", "hint: "}, args("no-such-program")...)

	for signal, left := range map[syscall.Signal]int{syscall.SIGINT: 0, syscall.SIGKILL: 1} {
		began := filepath.Join(f.base, signal.String())
		cmd := f.command(args("/bin/sh", "-c", ": >'"+began+"' && exec /bin/sleep 1000")...)
		cmd.Stderr = &echo{t: t}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		eventually(t, "the command runs", time.Minute, func() string {
			if _, err := os.Stat(began); err != nil {
				return err.Error()
			}
			return ""
		})
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if _, exited := errors.AsType[*exec.ExitError](<-ended); !exited {
			t.Errorf("after %s it did not fail", signal)
		}
		f.nothingOfExec(left)
		f.ok(args("/bin/true")...) // it takes away what a killed one left
		f.nothingOfExec(0)
	}
}

// nothingOfExec waits until nothing runs, and counts the folders of hosts that are left.
func (f *fleet) nothingOfExec(folders int) {
	f.t.Helper()
	eventually(f.t, "nothing runs", time.Minute, func() string { return told(f.on.processes(f)) })
	left, err := filepath.Glob(filepath.Join(f.state, "exec", "*"))
	if err != nil || len(left) != folders {
		f.t.Errorf("folders of hosts: %v, %v; want %d", left, err, folders)
	}
}
