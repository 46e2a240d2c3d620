//go:build e2e

package handover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"
)

// TestKills ends a hand-over at every write, before and after it is applied, and runs it again or aborts it, from the same machine or
// from one that knows nothing; then aborts at every write; then at random, several times in a row.
func TestKills(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	ctx := t.Context()

	w := b.worlds[0]
	machine := w.restore(ctx, t, w.beginning)
	o := w.execute(ctx, t, b.program, handOver, machine, &run{})
	if o.code != 0 {
		t.Fatalf("without a fault: exit %d:\n%s", o.code, o.output)
	}
	b.hold(t, b.judge(w).handedOver(ctx, t), "without a fault", o)
	writes := o.count()
	t.Logf("a hand-over of %d objects: %d writes, %d reads, %s", len(w.sourceBefore), writes, o.reads.Load(), o.took)
	if t.Failed() {
		t.Logf("it said:\n%s", o.output)
		for _, w := range o.writes {
			t.Logf("%3d %s %s %s", w.number, w.side, w.method, w.path)
		}
		return
	}
	forEach(t, b, "every write of a hand-over", b.share(everyWrite(writes), *kills*2/3), b.atWrite)
	if t.Failed() {
		return
	}

	// Just before the commit there is most to undo.
	last, aborts := b.beforeCommit(t, w, writes)
	forEach(t, b, "every write of an abort", b.share(everyWrite(aborts), *kills/4), func(t *testing.T, w *world, k kill) {
		b.atWriteOfAbort(t, w, last, k)
	})

	left := max(0, *kills-int(b.kills.Load()))
	seeds := make([]uint64, (left+1)/2) // about two kills each
	for n := range seeds {
		seeds[n] = b.random.Uint64()
	}
	forEach(t, b, "at random", seeds, func(t *testing.T, w *world, seed uint64) { b.atRandom(t, w, seed, writes) })
	t.Logf("%d kills, each followed by a run or an abort, in %s: nothing lost, doubled, orphaned, left paused or fenced",
		b.kills.Load(), time.Since(b.started).Round(time.Second))
}

// everyWrite is a kill before and one after each write.
func everyWrite(writes int) []kill {
	var all []kill
	for at := 1; at <= writes; at++ {
		all = append(all, kill{at, killBefore}, kill{at, killAfter})
	}
	return all
}

// share takes all of cases if they are no more than some, else each write once, before it or after it. A kill before a write leaves
// both sides as one after the write before does, so no state that a kill can leave is missing then; and if that is still too much, as
// many as some.
func (b *bed) share(cases []kill, some int) []kill {
	if len(cases) <= some {
		return cases
	}
	cases = slices.Clone(cases)
	parity := b.random.IntN(2)
	cases = slices.DeleteFunc(cases, func(k kill) bool { return (k.deed == killBefore) == (k.at/2%2 == parity) })
	if len(cases) > some {
		b.random.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
		cases = cases[:some]
	}
	return cases
}

// atWrite kills a hand-over; then it is run again, or aborted, from the same machine or from another one.
func (b *bed) atWrite(t *testing.T, w *world, k kill) {
	ctx := t.Context()
	machine := w.restore(ctx, t, w.beginning)
	if _, struck := b.killed(ctx, t, w, handOver, machine, k); !struck {
		return
	}
	story := "a hand-over, " + k.String()
	if k.at/4%2 == 0 {
		machine, story = newMachine(t), story+", from another machine"
	}
	if (k.deed == killBefore) == (k.at%2 == 0) {
		b.finish(ctx, t, w, machine, story)
		return
	}
	if b.undo(ctx, t, w, machine, story) && k.at%8 == 0 {
		b.finish(ctx, t, w, machine, fmt.Sprint(story, ", then abort"))
	}
}

// beforeCommit finds the last write of a hand-over whose kill can still be undone, and how many writes that takes.
func (b *bed) beforeCommit(t *testing.T, w *world, writes int) (last, aborts int) {
	t.Helper()
	ctx := t.Context()
	n := sort.Search(writes, func(n int) bool {
		machine := w.restore(ctx, t, w.beginning)
		if _, struck := b.killed(ctx, t, w, handOver, machine, kill{n + 1, killBefore}); !struck {
			return true
		}
		o := w.execute(ctx, t, b.program, abort, machine, &run{})
		if o.code == 0 {
			aborts = o.count()
		}
		return o.code != 0
	})
	t.Logf("after write %d of %d there is no way back; the abort before it has %d writes", n, writes, aborts)
	return n, aborts
}

// atWriteOfAbort kills a hand-over before its commit, and then its abort; then it is aborted again, or run to its end.
func (b *bed) atWriteOfAbort(t *testing.T, w *world, last int, k kill) {
	ctx := t.Context()
	machine := w.restore(ctx, t, w.beginning)
	if _, struck := b.killed(ctx, t, w, handOver, machine, kill{last, killBefore}); !struck {
		return
	}
	if _, struck := b.killed(ctx, t, w, abort, machine, k); !struck {
		return
	}
	story := fmt.Sprintf("a hand-over, killed before write %d, then an abort, %s", last, k)
	if k.at%4 == 0 {
		b.finish(ctx, t, w, machine, story)
		return
	}
	if k.at%4 == 1 {
		machine, story = newMachine(t), story+", from another machine"
	}
	b.undo(ctx, t, w, machine, story)
}

// anyKill is a kill at one of the first writes.
func anyKill(random *rand.Rand, writes int) kill {
	return kill{1 + random.IntN(writes), []deed{killBefore, killAfter}[random.IntN(2)]}
}

// atRandom kills up to three runs in a row, of one or the other, before one is let be.
func (b *bed) atRandom(t *testing.T, w *world, seed uint64, writes int) {
	ctx := t.Context()
	random := rand.New(rand.NewPCG(seed, 0))
	machine := w.restore(ctx, t, w.beginning)
	story := fmt.Sprintf("at random (%d)", seed)
	for range 1 + random.IntN(3) {
		verb := handOver
		if random.IntN(3) == 0 {
			verb = abort
		}
		if random.IntN(2) == 0 {
			machine = newMachine(t)
		}
		k := anyKill(random, writes)
		if verb == abort {
			k.at = 1 + k.at/2
		}
		o, struck := b.killed(ctx, t, w, verb, machine, k)
		story += fmt.Sprintf("; %s, %s", verb, k)
		if !struck {
			story += fmt.Sprintf(" (came to its end: exit %d)", o.code)
		}
	}
	if random.IntN(2) == 0 {
		b.finish(ctx, t, w, machine, story)
		return
	}
	b.undo(ctx, t, w, machine, story)
}
