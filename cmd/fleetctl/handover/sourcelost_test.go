//go:build e2e

package handover

import (
	"context"
	"fmt"
	"testing"
)

// TestSourceLost kills hand-overs, and then removes the source. As long as the target cannot have taken over, an abort at the target alone
// brings the target back to its first state, also if the abort is killed and run again. Then the target takes in the last snapshot of the
// source. A target that has taken over goes on alone.
func TestSourceLost(t *testing.T) {
	b := newBed(t, engine(t), 1, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	w := b.worlds[0]
	ctx := t.Context()
	machine := w.restore(ctx, t, w.beginning)
	whole := w.execute(ctx, t, b.program, handOver, machine, &run{})
	last, _ := b.beforeCommit(t, w, whole.count())
	for _, at := range []int{1, last / 4, last / 2, last * 3 / 4, last - 1} {
		story := fmt.Sprintf("a source that is lost after write %d of %d", at, whole.count())
		machine := w.restore(ctx, t, w.beginning)
		b.mustRun(t, w, backUp, story, &run{}, machine)
		if _, struck := b.killed(ctx, t, w, handOver, machine, kill{at, killAfter}); !struck {
			t.Fatalf("it came to its end before write %d", at)
		}
		during := sourceGone()
		during.judge = kill{3, killAfter}.strike
		w.execute(ctx, t, b.program, abortLost, machine, during)
		o := b.mustRun(t, w, abortLost, story, sourceGone(), machine)
		_, target := b.judge(w).sides(ctx, t)
		b.hold(t, append(b.judge(w).unchanged("the target", w.targetBefore, target), fences("the target", target)...), story, o)
		o = b.mustRun(t, w, restore, story+", then a restore", sourceGone(), machine)
		b.hold(t, b.judge(w).restored(ctx, t), story+", then a restore", o)
	}
	machine = w.restore(ctx, t, w.beginning)
	if _, struck := b.killed(ctx, t, w, handOver, machine, kill{last, killAfter}); !struck {
		t.Fatalf("it came to its end before write %d", last)
	}
	if o := w.execute(ctx, t, b.program, abortLost, machine, sourceGone()); o.code == 0 {
		t.Errorf("the target has taken over, and an abort says that all is as before:\n%s", o.output)
	}
	b.finish(ctx, t, w, machine, "after an abort that refused")
}

// mustRun runs a verb on a machine to its end.
func (b *bed) mustRun(t *testing.T, w *world, verb, story string, r *run, machine string) outcome {
	t.Helper()
	o := w.execute(t.Context(), t, b.program, verb, machine, r)
	if o.code != 0 {
		t.Fatalf("%s: %s: exit %d\n%s", story, verb, o.code, o.output)
	}
	return o
}
