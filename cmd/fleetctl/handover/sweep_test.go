//go:build e2e

package handover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// bed has the worlds in which cases run side by side, and counts the kills.
type bed struct {
	worlds  []*world
	program program
	judge   func(*world) judge
	random  *rand.Rand
	kills   atomic.Int64
	started time.Time
}

// kill ends a program at a write.
type kill struct {
	at   int
	deed deed
}

func (k kill) String() string { return fmt.Sprintf("%s write %d", k.deed, k.at) }

// strike is the fault that a kill is.
func (k kill) strike(w write) deed {
	if w.number == k.at {
		return k.deed
	}
	return pass
}

// forEach runs try for each case, in whichever world is free, and says now and then how far it is.
func forEach[C any](t *testing.T, b *bed, name string, cases []C, try func(*testing.T, *world, C)) {
	t.Helper()
	queue := make(chan C, len(cases))
	for _, n := range b.random.Perm(len(cases)) { // so that the first minute has seen all phases
		queue <- cases[n]
	}
	close(queue)
	var done atomic.Int64
	t.Run(name, func(t *testing.T) {
		for n, w := range b.worlds {
			t.Run(fmt.Sprintf("world %d", n+1), func(t *testing.T) {
				t.Parallel()
				for c := range queue {
					if t.Failed() {
						return // the first fault says most; the others of this world would repeat it
					}
					try(t, w, c)
					if n := done.Add(1); n%25 == 0 || int(n) == len(cases) {
						t.Logf("%s: %d of %d, %d kills in all, after %s and %s of processor time", name, n, len(cases), b.kills.Load(),
							time.Since(b.started).Round(time.Second), processorTime(t).Round(time.Second))
					}
				}
			})
		}
	})
}

// killed kills the program at a write, and judges the world by the rules that hold at any moment. It returns false if the program came to
// its end before that write: the number of writes differs from run to run, because the program waits for controllers.
func (b *bed) killed(ctx context.Context, t *testing.T, w *world, verb, machine string, k kill) (outcome, bool) {
	t.Helper()
	o := w.execute(ctx, t, b.program, verb, machine, &run{judge: k.strike})
	if len(o.struck) == 0 {
		return o, false
	}
	b.countKill(t)
	b.hold(t, b.judge(w).meanwhile(ctx, t), verb+", "+k.String(), o)
	return o, true
}

func (b *bed) countKill(t *testing.T) {
	t.Helper()
	if n := b.kills.Add(1); n%25 == 0 {
		t.Logf("%d of %d kills after %s", n, *kills, time.Since(b.started).Round(time.Second))
	}
}

// seedTarget puts more into the target of each world, from its beginning on.
func (b *bed) seedTarget(t *testing.T, seed func(*seeder)) {
	t.Helper()
	for _, w := range b.worlds {
		w.restore(t.Context(), t, w.beginning)
		seed(newSeeder(w.target))
		w.beginning = w.save(t.Context(), t, "")
		w.targetBefore = w.target.read(t.Context(), t)
	}
}

// finish runs the program to its end, and compares its report with the content of both sides.
func (b *bed) finish(ctx context.Context, t *testing.T, w *world, machine, story string) {
	t.Helper()
	o := w.execute(ctx, t, b.program, handOver, machine, &run{})
	if o.code != 0 {
		t.Errorf("%s, then again: exit %d:\n%s", story, o.code, o.output)
		return
	}
	b.hold(t, b.judge(w).handedOver(ctx, t), story+", then again", o)
}

// undo aborts; where that says that only forward is left, it finishes.
func (b *bed) undo(ctx context.Context, t *testing.T, w *world, machine, story string) (undone bool) {
	t.Helper()
	o := w.execute(ctx, t, b.program, abort, machine, &run{})
	if o.code == 0 {
		b.hold(t, b.judge(w).asBefore(ctx, t), story+", then abort", o)
		return true
	}
	b.hold(t, b.judge(w).meanwhile(ctx, t), story+", then an abort that failed", o)
	b.finish(ctx, t, w, machine, fmt.Sprintf("%s, then an abort that said %q", story, lastLine(o.output)))
	return false
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// hold fails the test where there are faults, with how it came to them.
func (b *bed) hold(t *testing.T, faults []string, story string, o outcome) {
	t.Helper()
	if len(faults) == 0 {
		return
	}
	var struck strings.Builder
	for _, w := range o.struck {
		fmt.Fprintf(&struck, "write %d: %s %s at the %s\n", w.number, w.method, w.path, w.side)
	}
	t.Errorf("seed %d: %s\n%sfaults:\n%s\nthe program said:\n%s", *seed, story, struck.String(), strings.Join(sorted(faults), "\n"), o.output)
}

// newBed starts worlds side by side.
func newBed(
	t *testing.T,
	p program,
	count int,
	seedFleet func(context.Context, testing.TB, *seeder),
	status bool,
	seedTarget ...func(*seeder),
) *bed {
	t.Helper()
	b := &bed{
		worlds: make([]*world, count), program: p, started: time.Now(), random: rand.New(rand.NewPCG(*seed, 0)),
		judge: func(w *world) judge { return judge{world: w, status: status} },
	}
	t.Logf("seed %d, %d kills, %d worlds", *seed, *kills, count)
	var wg sync.WaitGroup
	for n := range b.worlds {
		wg.Go(func() { b.worlds[n] = newWorld(t, func(s *seeder) { seedFleet(t.Context(), t, s) }, seedTarget...) })
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return b
}
