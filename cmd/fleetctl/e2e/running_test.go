//go:build e2e

package e2e

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// running is a fleetctl that is to be killed.
type running struct {
	t        *testing.T
	cmd      *exec.Cmd
	progress *echo
	ended    chan error
}

// begin starts fleetctl.
func (f *fleet) begin(args ...string) *running {
	f.t.Helper()
	r := &running{t: f.t, cmd: f.command(args...), progress: &echo{t: f.t}, ended: make(chan error, 1)}
	r.cmd.Stderr = r.progress
	if err := r.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		err := r.cmd.Wait()
		f.hears(r.progress.String())
		r.ended <- err
	}()
	return r
}

// alive fails the test where it has ended by itself. It takes a moment, so that who looks again and again leaves the others room.
func (r *running) alive() {
	r.t.Helper()
	r.lives(20 * time.Millisecond)
}

// lives lets a moment pass, and fails the test where it has ended by then.
func (r *running) lives(moment time.Duration) {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.t.Fatalf("it ended before it was killed: %v\n%s", err, r.progress)
	case <-time.After(moment):
	}
}

// killedWhen kills the command as soon as look returns true. The command is stopped while look runs, however long that takes on a busy
// machine, and runs for a moment between two calls. So look sees every state that lasts longer than such a moment.
func (r *running) killedWhen(look func() bool) {
	r.t.Helper()
	for {
		if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			r.t.Fatalf("it ended before it was killed: %v\n%s", err, r.progress)
		}
		if look() {
			r.kill()
			return
		}
		if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			r.t.Fatalf("it ended before it was killed: %v\n%s", err, r.progress)
		}
		r.lives(5 * time.Millisecond)
	}
}

// kill kills it, which has to come before its end.
func (r *running) kill() {
	r.t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	if err := <-r.ended; err == nil || r.cmd.ProcessState.Exited() {
		r.t.Fatalf("it came to its end before it was killed: %v", err)
	}
}
