//go:build integration

package embedded_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
)

// A command that was killed before its host was ready does not hear that it is. The host lives on, and the next command finds it.
func TestReadyWithoutAnybodyToGreet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, Programs: programs(t)})
	create(t, h)
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), exe, supervisorArg, dir)
	command.Stdout, command.Stderr = w, w
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(patience)
	for st := host.State(""); st != host.StateRunning; {
		if st, err = h.State(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-deadline:
			t.Fatal("it does not run")
		case <-time.After(10 * time.Millisecond):
		}
	}
	create(t, h)
	if holder, _ := supervisor(t, dir); holder.PID != command.Process.Pid {
		t.Errorf("process %d holds the host, not %d", holder.PID, command.Process.Pid)
	}
}

// A supervisor that somebody kills before its host is ready is started again by the same Create.
func TestKilledWhileItStarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, Programs: programs(t)})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for { // until the first one has left word
			if _, err := os.Stat(filepath.Join(dir, "supervisor.json")); err == nil {
				break
			}
			select {
			case <-t.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		if holder, _ := supervisor(t, dir); holder.Signal(syscall.SIGKILL) != nil {
			t.Error("it has ended by itself")
		}
	}()
	create(t, h)
	<-killed
}
