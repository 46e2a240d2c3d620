//go:build e2e

package handover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	// mostWrites is how far a run comes at most before it is killed, mostInARow how many are killed before one is let be.
	mostWrites, mostInARow = 30, 40
)

// row is a pair of verbs that are killed again and again: one continues the work, the other undoes it.
type row struct {
	name, forward, back string
	// sourceIsGone keeps the source from the program, whose world is the target alone then.
	sourceIsGone bool
	// machine makes the folder of a machine that knows nothing of the runs before.
	machine func(t *testing.T, w *world) string
	// meanwhile is nil where nothing can be said of both sides until it ends.
	meanwhile, done, undone func(ctx context.Context, t testing.TB, j judge) []string
}

func (r row) run(strike func(write) deed) *run {
	o := &run{judge: strike}
	if r.sourceIsGone {
		o.away = func(side string) bool { return side == "source" }
	}
	return o
}

// handOvers are rows of hand-overs of all Clusters.
func handOvers() row {
	return row{
		name: "hand-over", forward: handOver, back: abort, machine: func(t *testing.T, _ *world) string { return newMachine(t) },
		meanwhile: func(ctx context.Context, t testing.TB, j judge) []string { return j.meanwhile(ctx, t) },
		done:      func(ctx context.Context, t testing.TB, j judge) []string { return j.handedOver(ctx, t) },
		undone:    func(ctx context.Context, t testing.TB, j judge) []string { return j.asBefore(ctx, t) },
	}
}

// transfers are rows of transfers of one Cluster.
func transfers() row {
	r := handOvers()
	r.name, r.forward, r.back = "transfer", transfer, abortTransfer
	r.done = func(ctx context.Context, t testing.TB, j judge) []string {
		faults, went := j.transferred(ctx, t)
		if len(went) < fewestOfACluster {
			faults = append(faults, fmt.Sprintf("only %d objects went", len(went)))
		}
		return faults
	}
	return r
}

// restores are rows of restores of a snapshot. The snapshot of each world is taken first, by a run that writes nothing.
func restores(t *testing.T, b *bed) row {
	t.Helper()
	taken := map[*world][]byte{}
	for _, w := range b.worlds {
		taken[w] = b.backedUp(t, w)
	}
	return row{
		name: "restore", forward: restore, back: abortRestore, sourceIsGone: true,
		machine: func(t *testing.T, w *world) string {
			t.Helper()
			machine := newMachine(t)
			if err := os.WriteFile(filepath.Join(machine, snapshotFile), taken[w], 0o600); err != nil {
				t.Fatal(err)
			}
			return machine
		},
		done: func(ctx context.Context, t testing.TB, j judge) []string { return j.restored(ctx, t) },
		undone: func(ctx context.Context, t testing.TB, j judge) []string {
			if finished(ctx, t, j.world) { // there was nothing to undo any more
				return j.restored(ctx, t)
			}
			_, target := j.sides(ctx, t)
			return j.unchanged("the target", j.world.targetBefore, target)
		},
	}
}

// TestKillsInARow ends a hand-over, a restore and a transfer again and again, each time a few writes further, until one comes to its end:
// each kill is followed by a run or an abort, which is killed in its turn. A kill takes a fourth of the processor time that it takes in
// TestKills, where a whole run follows each. Of ten kills six are of hand-overs, two of restores and two of transfers.
func TestKillsInARow(t *testing.T) {
	fleet := func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }
	b := newBed(t, engine(t), *worlds, fleet, true)
	began, fifth := processorTime(t), int64(*kills)/5
	b.rows(t, handOvers(), int64(*kills)-2*fifth)
	b.rows(t, restores(t, b), int64(*kills)-fifth)
	b.seedTarget(t, ownClusters(t))
	b.rows(t, transfers(), int64(*kills))
	took := processorTime(t) - began
	t.Logf("%d kills in %s, %s of processor time for each: nothing lost, doubled, orphaned, left paused or fenced",
		b.kills.Load(), time.Since(b.started).Round(time.Second), (took / time.Duration(max(1, b.kills.Load()))).Round(time.Millisecond))
}

// rows runs one row after the other in each world until the bed has seen so many kills.
func (b *bed) rows(t *testing.T, r row, upTo int64) {
	t.Helper()
	seeds := make([]uint64, max(0, upTo-b.kills.Load()))
	for n := range seeds {
		seeds[n] = b.random.Uint64()
	}
	forEach(t, b, "kills of a "+r.name+" in a row", seeds, func(t *testing.T, w *world, seed uint64) {
		if b.kills.Load() < upTo {
			b.inARow(t, w, r, seed, upTo)
		}
	})
}

// inARow is one hand-over from the beginning to the end, in as many runs as it takes.
func (b *bed) inARow(t *testing.T, w *world, r row, seed uint64, upTo int64) {
	t.Helper()
	ctx := t.Context()
	random := rand.New(rand.NewPCG(seed, 0))
	w.restore(ctx, t, w.beginning)
	machine := r.machine(t, w)
	story := fmt.Sprintf("%ss in a row (%d)", r.name, seed)
	for range mostInARow {
		if b.kills.Load() >= upTo || t.Failed() {
			break
		}
		verb := r.forward
		if random.IntN(6) == 0 {
			verb = r.back
		}
		if random.IntN(3) == 0 {
			machine = r.machine(t, w)
		}
		k := anyKill(random, mostWrites)
		story += fmt.Sprintf("; %s, %s", verb, k)
		o, struck := b.killedIn(ctx, t, w, r, verb, machine, k)
		switch {
		case struck:
		case verb == r.forward && o.code == 0:
			b.hold(t, r.done(ctx, t, b.judge(w)), story+", which came to its end", o)
			return
		case verb == r.forward:
			t.Errorf("%s: exit %d:\n%s", story, o.code, o.output)
			return
		case o.code == 0:
			b.hold(t, r.undone(ctx, t, b.judge(w)), story+", which came to its end", o)
		case r.meanwhile != nil: // only forward is left
			b.hold(t, r.meanwhile(ctx, t, b.judge(w)), story+", which refused", o)
		}
	}
	if t.Failed() {
		return
	}
	o := w.execute(ctx, t, b.program, r.forward, machine, r.run(nil))
	if o.code != 0 {
		t.Errorf("%s, then again: exit %d:\n%s", story, o.code, o.output)
		return
	}
	b.hold(t, r.done(ctx, t, b.judge(w)), story+", then again", o)
}

// killedIn is killed for a row.
func (b *bed) killedIn(ctx context.Context, t *testing.T, w *world, r row, verb, machine string, k kill) (outcome, bool) {
	t.Helper()
	o := w.execute(ctx, t, b.program, verb, machine, r.run(k.strike))
	if len(o.struck) == 0 {
		return o, false
	}
	b.countKill(t)
	if r.meanwhile != nil {
		b.hold(t, r.meanwhile(ctx, t, b.judge(w)), verb+", "+k.String(), o)
	}
	return o, true
}
