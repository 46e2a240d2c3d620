//go:build e2e

package handover

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// world is two management clusters with a proxy before each, and their objects at the beginning.
type world struct {
	source, target           *side
	sourceProxy, targetProxy *proxy
	gates                    []*gate
	// attached are objects of the target's Flux as a pivot leaves them, if these differ from the source's.
	attached                   snapshot
	sourceBefore, targetBefore snapshot
	beginning                  moment
}

// moment is what both sides held at one time, and the folder that a machine kept.
type moment struct {
	source, target saved
	machine        string
}

// newWorld starts both sides and puts a fleet into the source, and whatever seedTarget puts there into the target.
func newWorld(t testing.TB, seed func(*seeder), seedTarget ...func(*seeder)) *world {
	t.Helper()
	w := &world{}
	for name, s := range map[string]**side{"source": &w.source, "target": &w.target} {
		*s = startSide(t, name)
		(*s).play(t.Context(), t)
	}
	seeds := newSeeder(w.source)
	seeds.management(t.Context(), t)
	targetSeeds := newSeeder(w.target)
	targetSeeds.management(t.Context(), t)
	seed(seeds)
	for _, seed := range seedTarget {
		seed(targetSeeds)
	}
	w.sourceProxy, w.targetProxy = newProxy(t, w.source), newProxy(t, w.target)
	w.beginning = w.save(t.Context(), t, "")
	w.sourceBefore, w.targetBefore = w.source.read(t.Context(), t), w.target.read(t.Context(), t)
	return w
}

func (w *world) save(ctx context.Context, t testing.TB, machine string) moment {
	t.Helper()
	return moment{source: w.source.save(ctx, t), target: w.target.save(ctx, t), machine: machine}
}

// restore brings both sides back to a moment, and returns the folder of a machine with the state of that moment.
func (w *world) restore(ctx context.Context, t testing.TB, m moment) (machine string) {
	t.Helper()
	w.source.restore(ctx, t, m.source)
	w.target.restore(ctx, t, m.target)
	machine = newMachine(t)
	if m.machine != "" {
		if err := os.RemoveAll(machine); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(machine, os.DirFS(m.machine)); err != nil {
			t.Fatal(err)
		}
	}
	return machine
}

// newMachine is the home of a machine that knows nothing.
func newMachine(t testing.TB) string {
	t.Helper()
	return t.TempDir()
}

// The verbs of a program.
const (
	handOver = "run"
	abort    = "abort"
	// abortAlone is an abort without a target, abortLost one without a source.
	abortAlone = "abort-alone"
	abortLost  = "abort-lost"
	// backUp takes a snapshot of the source into the machine's folder, restore gives it to the target, abortRestore undoes that.
	backUp       = "backup"
	restore      = "restore"
	abortRestore = "abort-restore"
	// fence and takeIn are the two runs of a restore in which another tool makes the objects; abortRestore undoes that, too.
	fence  = "fence"
	takeIn = "take-in"
	// makeStandby makes the target a standby of the source, makeAnothers of another one. try tries the snapshot on it, and activate has it
	// take over with that, which abortActivate undoes. relieve has it take over from a source that lives: abortRelieve undoes that, and
	// abortWithout where the source is lost.
	makeStandby   = "rest"
	makeAnothers  = "rest-anothers"
	try           = "try"
	activate      = "activate"
	abortActivate = "abort-activate"
	relieve       = "relieve"
	abortRelieve  = "abort-relieve"
	abortWithout  = "abort-without-source"
	// detach takes one Cluster away from the source, transfer hands it to the target, abortTransfer undoes that.
	detach        = "detach"
	transfer      = "transfer"
	abortTransfer = "abort-transfer"
	// transferCommand is all of `fleetctl cluster transfer`, with fleet repos and this machine's state, and abortCommand is it with --abort.
	transferCommand = "transfer-command"
	abortCommand    = "abort-command"
	// backupCommand is all of `fleetctl backup`.
	backupCommand = "backup-command"
	// pivotCommand is what a pivot does with Flux and the fleet repo, too.
	pivotCommand = "pivot-command"
)

// program is the tested program. It hands over or aborts, with the kubeconfigs of both sides, and keeps its state in home.
type program struct {
	name    string
	command func(ctx context.Context, verb, source, target, home string) *exec.Cmd
	// limit of one run.
	limit time.Duration
}

// outcome of one run of the program.
type outcome struct {
	*run
	code   int // -1: it was killed
	output string
	took   time.Duration
}

// prepare returns the command that is one run of the program.
func (w *world) prepare(ctx context.Context, t testing.TB, p program, verb, machine string, r *run) *exec.Cmd {
	t.Helper()
	files := map[string][]byte{"source.kubeconfig": w.sourceProxy.kubeconfig, "target.kubeconfig": w.targetProxy.kubeconfig}
	dir := newMachine(t)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.sourceProxy.run.Store(r)
	w.targetProxy.run.Store(r)
	for _, g := range w.gates {
		g.run.Store(r)
	}
	return p.command(ctx, verb, filepath.Join(dir, "source.kubeconfig"), filepath.Join(dir, "target.kubeconfig"), machine)
}

// execute runs the program with the fault that judge is, to its end or its death. It returns when no write of it is under way any more.
func (w *world) execute(ctx context.Context, t testing.TB, p program, verb, machine string, r *run) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	cmd := w.prepare(ctx, t, p, verb, machine, r)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// Stock clusterctl is several programs, one after the other.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	ended := make(chan struct{})
	started := make(chan struct{})
	var once sync.Once
	r.kill = func() {
		<-started
		once.Do(func() { _ = cmd.Cancel() }) // it may have ended by itself
		<-ended
	}
	r.full = func() {
		<-started
		// A file may not grow beyond nothing. The program gets an error, as of a full disk, for it ignores the signal.
		if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}, nil); err != nil &&
			!errors.Is(err, unix.ESRCH) {
			t.Errorf("fill the disk of %s: %v", p.name, err)
		}
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	err := cmd.Wait()
	close(ended)
	r.inside.Wait()
	o := outcome{run: r, output: output.String(), took: time.Since(begin)}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		o.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	tellsNothing(t, cmd, o.output, machine)
	if ctx.Err() != nil {
		t.Errorf("%s %s did not end within %s:\n%s", p.name, verb, p.limit, o.output)
	}
	return o
}
