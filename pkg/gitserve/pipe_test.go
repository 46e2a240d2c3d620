//go:build unix

package gitserve_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitserve"
)

// The command that starts a server is killed before the server writes its hello. The server then has no reader, and serves all the same.
func TestServesWithoutAnybodyToGreet(t *testing.T) {
	s := spec(t)
	before := ensure(t, s, true)
	if err := gitserve.Stop(t.Context(), s.StateDir); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), s.Executable, s.Args...)
	cmd.Stdout, cmd.Stderr = w, w // its log goes nowhere, too
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for !status(t, s).Healthy {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-deadline:
			t.Fatal("it does not serve within 20 seconds")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if again := ensure(t, s, false); again != before {
		t.Errorf("it serves at %+v, before at %+v", again, before)
	}
	if pid := status(t, s).PID; pid != cmd.Process.Pid {
		t.Errorf("process %d serves, not %d", pid, cmd.Process.Pid)
	}
}
