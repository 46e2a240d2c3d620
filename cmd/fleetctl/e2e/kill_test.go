//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledAtEachStep kills init with SIGKILL in the middle of each of its steps, then runs it again: it converges.
func TestKilledAtEachStep(t *testing.T) {
	for _, on := range hosts {
		t.Run(on.name, func(t *testing.T) {
			f := newFleetOn(t, on, "e2e-kill")
			if !f.killEach() {
				return
			}
			f.step("Ctrl-C returns within two seconds and says how to go on", func(*testing.T) { f.interrupted() })
			if !f.step("run again, it converges", f.converges) {
				return
			}
			f.step("teardown leaves nothing", func(*testing.T) {
				f.ok("teardown", "--yes")
				if running := on.processes(f); len(running) > 0 {
					f.t.Errorf("left behind:\n%s", told(running))
				}
			})
		})
	}
}

// killEach kills init in each of the steps that it says it has, on hosts that name some in those, and tells whether that went well.
func (f *fleet) killEach() bool {
	f.t.Helper()
	plan := decode[struct {
		Steps []struct{ Name string }
	}](f.t, f.ok(initArgs("--dry-run")...).stdout)
	if len(plan.Steps) < 8 {
		f.t.Fatalf("init has only these steps: %v", plan.Steps)
	}
	killed := 0
	for _, step := range plan.Steps {
		if len(f.on.killAt) > 0 && !slices.Contains(f.on.killAt, step.Name) {
			continue
		}
		killed++
		f.step("kill -9 during "+step.Name, func(t *testing.T) {
			if !f.killDuring(step.Name) {
				t.Logf("init ended before it could be killed in %q", step.Name)
			}
		})
	}
	if killed < len(f.on.killAt) {
		f.t.Errorf("of the steps %v init has only %d", f.on.killAt, killed)
	}
	return !f.t.Failed()
}

func (f *fleet) converges(t *testing.T) {
	r := decode[initResult](t, f.ok(initArgs()...).stdout)
	if head := f.git("rev-parse", "HEAD"); head != r.Revision {
		t.Errorf("revision %s, HEAD %s", r.Revision, head)
	}
	st, code := f.status()
	if code != 0 {
		t.Errorf("status: exit %d, %+v", code, st.Problems)
	}
	if n := f.git("rev-list", "--count", "HEAD"); n != "1" {
		t.Errorf("%s commits after init, want 1", n)
	}
}

// killDuring runs init and kills it with SIGKILL a moment after it has said that it began step. It tells whether that came before
// the end of init.
func (f *fleet) killDuring(step string) bool {
	f.t.Helper()
	began := make(chan struct{}, 1)
	cmd := f.command(initArgs()...)
	cmd.Stderr = &echo{t: f.t, line: func(line string) {
		if strings.HasPrefix(line, "… "+step) {
			select {
			case began <- struct{}{}:
			default:
			}
		}
	}}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	var exit error
	ended := make(chan struct{})
	go func() {
		exit = cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		if exit != nil {
			f.t.Fatalf("init ended by itself before %q: %v", step, exit)
		}
		return false
	case <-began:
	case <-time.After(10 * time.Minute):
		if err := cmd.Process.Kill(); err != nil {
			f.t.Error(err)
		}
		f.t.Fatalf("init did not reach %q within ten minutes", step)
	}
	moment := 150 * time.Millisecond
	if step == "create management cluster" {
		moment = f.on.midway
	}
	select {
	case <-ended:
		return false
	case <-time.After(moment):
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		f.t.Fatal(err)
	}
	<-ended
	killed, ok := errors.AsType[*exec.ExitError](exit)
	return ok && killed.ExitCode() == -1
}

// interrupted sends what Ctrl-C sends.
func (f *fleet) interrupted() {
	f.t.Helper()
	cmd := f.command(initArgs()...)
	progress := &echo{t: f.t}
	began := make(chan struct{}, 1)
	progress.line = func(line string) {
		if strings.HasPrefix(line, "… ") {
			select {
			case began <- struct{}{}:
			default:
			}
		}
	}
	cmd.Stderr = progress
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	<-began
	sent := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	_ = cmd.Wait()                                       // the exit code is looked at below
	if took := time.Since(sent); took > 15*time.Second { // two seconds, where nothing else runs
		f.t.Errorf("it took %s to return", took)
	}
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		f.t.Errorf("exit %d, want 130", code)
	}
	if text := progress.String(); !strings.Contains(text, "fleetctl init --provider docker") {
		f.t.Errorf("it does not say how to go on:\n%s", text)
	}
}

// TestPivot makes a management cluster on kind the bootstrap cluster of a pivot.
func TestPivot(t *testing.T) {
	f := newFleetOn(t, onKind, "e2e-pivot")
	if f.step("init", f.converges) {
		f.pivot()
	}
}

// pivot hands the work to a cluster of containers that the fleet repo declares, after which a commit still scales it.
func (f *fleet) pivot() {
	const target = "perm"
	f.step("bootstrap --pivot-to", func(t *testing.T) {
		f.commit("add the permanent management cluster", map[string]string{
			clusterPath(target): clusterFile("docker", target, dockerValues(0, nodeImage(f.t))),
		})
		args := initArgs("--pivot-to", target)
		args[0] = "bootstrap"
		r := decode[struct {
			Outcome   string `json:"outcome"`
			PivotedTo string `json:"pivotedTo"`
			Kept      bool   `json:"kept"`
		}](t, f.ok(args...).stdout)
		if r.Outcome != "ready" || r.PivotedTo != target+"/"+target || r.Kept {
			t.Errorf("bootstrap says %+v", r)
		}
		if left := containers(t, f.name+"-"); len(left) > 0 {
			t.Errorf("the bootstrap cluster is still there: %v", left)
		}
	})
	defer removeContainers(f.t, target+"-")
	// Also where a step before has failed: the target's Flux reads the fleet repo from this machine until somebody says that it need not.
	defer f.step("what serves the fleet repo to the target ends when it is told to", func(t *testing.T) {
		f.ok("host", "stop")
		if running := f.on.processes(f); len(running) > 0 {
			t.Errorf("left behind:\n%s", told(running))
		}
	})
	if f.t.Failed() {
		return
	}
	f.step("after the pivot a commit still scales the cluster", func(*testing.T) {
		f.commit("scale", map[string]string{clusterPath(target): clusterFile("docker", target, dockerValues(1, nodeImage(f.t)))})
		eventually(f.t, "a second machine has joined", 6*time.Minute, func() string {
			st, code := f.status()
			for _, c := range st.Clusters {
				ready := 0
				for _, m := range c.Machines {
					if m.Ready {
						ready++
					}
				}
				if c.Name == target && ready == 2 {
					return ""
				}
			}
			return fmt.Sprintf("exit %d, %+v", code, st.Problems)
		})
	})
	f.step("teardown does not touch a permanent management cluster", func(*testing.T) {
		f.fails(1, []string{"permanent"}, "teardown", "--delete-clusters", "--yes")
	})
}
