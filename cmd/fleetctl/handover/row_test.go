//go:build e2e

package handover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	// mostWrites is how far a run comes at most before it is killed, mostInARow how many are killed before one is let be.
	mostWrites, mostInARow = 30, 40
)

// TestKillsInARow ends a hand-over again and again, each time a few writes further, until one comes to its end: each kill is followed by a
// run or an abort, which is killed in its turn. A kill takes a fourth of the processor time that it takes in TestKills, where a whole run
// follows each.
func TestKillsInARow(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	seeds := make([]uint64, *kills)
	for n := range seeds {
		seeds[n] = b.random.Uint64()
	}
	began := processorTime(t)
	forEach(t, b, "kills in a row", seeds, func(t *testing.T, w *world, seed uint64) {
		if !b.enough() {
			b.inARow(t, w, seed)
		}
	})
	took := processorTime(t) - began
	t.Logf("%d kills in %s, %s of processor time for each: nothing lost, doubled, orphaned, left paused or fenced",
		b.kills.Load(), time.Since(b.started).Round(time.Second), (took / time.Duration(max(1, b.kills.Load()))).Round(time.Millisecond))
}

func (b *bed) enough() bool { return b.kills.Load() >= int64(*kills) }

// inARow is one hand-over from the beginning to the end, in as many runs as it takes.
func (b *bed) inARow(t *testing.T, w *world, seed uint64) {
	t.Helper()
	ctx := t.Context()
	random := rand.New(rand.NewPCG(seed, 0))
	machine := w.restore(ctx, t, w.beginning)
	story := fmt.Sprintf("in a row (%d)", seed)
	for range mostInARow {
		if b.enough() || t.Failed() {
			break
		}
		verb := handOver
		if random.IntN(6) == 0 {
			verb = abort
		}
		if random.IntN(3) == 0 {
			machine = newMachine(t)
		}
		k := anyKill(random, mostWrites)
		story += fmt.Sprintf("; %s, %s", verb, k)
		o, struck := b.killed(ctx, t, w, verb, machine, k)
		switch {
		case struck:
		case verb == handOver && o.code == 0:
			b.hold(t, b.judge(w).handedOver(ctx, t), story+", which came to its end", o)
			return
		case verb == handOver:
			t.Errorf("%s: exit %d:\n%s", story, o.code, o.output)
			return
		case o.code == 0:
			b.hold(t, b.judge(w).asBefore(ctx, t), story+", which came to its end", o)
		default: // only forward is left
			b.hold(t, b.judge(w).meanwhile(ctx, t), story+", which refused", o)
		}
	}
	if !t.Failed() {
		b.finish(ctx, t, w, machine, story)
	}
}
