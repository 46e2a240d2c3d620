//go:build e2e

package handover

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// trouble is a fault that a hand-over has to survive, other than a kill.
type trouble struct {
	name string
	run  func(*world) *run
}

// from does deed to a write and to all later writes for some time, because the trouble of a server lasts longer than one request.
func from(at int, does deed, lasts time.Duration) func(*world) *run {
	return func(*world) *run {
		var until time.Time
		return &run{judge: func(w write) deed {
			if w.number == at {
				until = time.Now().Add(lasts)
			}
			if w.number == at || time.Now().Before(until) {
				return does
			}
			return pass
		}}
	}
}

// gone takes one side away from a write on, for some time.
func gone(at int, side string, lasts time.Duration) func(*world) *run {
	return func(*world) *run {
		r := &run{}
		var until time.Time
		r.judge = func(w write) deed {
			if w.number == at {
				until = time.Now().Add(lasts)
			}
			return pass
		}
		r.away = func(asked string) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return asked == side && time.Now().Before(until)
		}
		return r
	}
}

// full fills the disk of one side's etcd before a write. It has space again once the run has ended.
func full(at int, side string) func(*world) *run {
	return func(w *world) *run {
		return &run{judge: func(write write) deed {
			if write.number == at {
				w.fill(side, true)
			}
			return pass
		}}
	}
}

// fill makes the disk of a side's etcd full, or gives it space again.
func (w *world) fill(side string, full bool) {
	s := w.source
	if side == "target" {
		s = w.target
	}
	if err := s.etcd.fill(context.Background(), full); err != nil {
		panic(err)
	}
}

// TestFaults lets both sides answer with conflicts, with too many requests and errors, cut connections, hang, vanish and run out of disk. A
// hand-over may give up then, but it may not say that it is done when it is not, and run again it is.
func TestFaults(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	w := b.worlds[0]
	machine := w.restore(t.Context(), t, w.beginning)
	whole := w.execute(t.Context(), t, b.program, handOver, machine, &run{})
	b.hold(t, b.judge(w).handedOver(t.Context(), t), "without a fault", whole)
	var troubles []trouble
	for does := cutBefore; does <= answer503; does++ {
		for _, lasts := range []time.Duration{0, time.Second} {
			if does == hold && lasts > 0 {
				continue
			}
			at := 1 + b.random.IntN(whole.count())
			troubles = append(troubles, trouble{fmt.Sprintf("%s from write %d on for %s", does, at, lasts), from(at, does, lasts)})
		}
	}
	const parts = 5 // of a hand-over
	for _, side := range []string{"source", "target"} {
		for part := range parts {
			at := 1 + part*whole.count()/parts + b.random.IntN(whole.count()/parts)
			lasts := []time.Duration{2 * time.Second, time.Hour}[part%2]
			troubles = append(troubles, trouble{fmt.Sprintf("the %s is gone from write %d on for %s", side, at, lasts), gone(at, side, lasts)})
			at = 1 + part*whole.count()/parts + b.random.IntN(whole.count()/parts)
			troubles = append(troubles, trouble{fmt.Sprintf("the disk of the %s is full from write %d on", side, at), full(at, side)})
		}
	}
	forEach(t, b, "faults", troubles, func(t *testing.T, w *world, f trouble) {
		machine := w.restore(t.Context(), t, w.beginning)
		o := w.execute(t.Context(), t, b.program, handOver, machine, f.run(w))
		w.fill("source", false)
		w.fill("target", false)
		t.Logf("%s: exit %d after %s", f.name, o.code, o.took.Round(time.Millisecond))
		if o.code == 0 {
			b.hold(t, b.judge(w).handedOver(t.Context(), t), f.name, o)
			return
		}
		b.hold(t, b.judge(w).meanwhile(t.Context(), t), f.name, o)
		if len(f.name)%2 == 0 {
			b.finish(t.Context(), t, w, machine, f.name)
			return
		}
		b.undo(t.Context(), t, w, machine, f.name)
	})
}

// TestTargetLost kills hand-overs, and then cuts off the target. As long as the target cannot have taken over, an abort without the target
// gives all work back to the source. When the target answers again, another abort removes the remaining objects from the target.
func TestTargetLost(t *testing.T) {
	b := newBed(t, engine(t), 1, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	w := b.worlds[0]
	ctx := t.Context()
	lost := func() *run { return &run{away: func(side string) bool { return side == "target" }} }
	machine := w.restore(ctx, t, w.beginning)
	whole := w.execute(ctx, t, b.program, handOver, machine, &run{})
	last, _ := b.beforeCommit(t, w, whole.count())
	for _, at := range []int{1, 3, last / 4, last / 2, last * 3 / 4, last - 4} {
		machine := w.restore(ctx, t, w.beginning)
		if _, struck := b.killed(ctx, t, w, handOver, machine, kill{at, killAfter}); !struck {
			t.Fatalf("it came to its end before write %d", at)
		}
		o := w.execute(ctx, t, b.program, abortAlone, machine, lost())
		if o.code != 0 {
			t.Fatalf("killed after write %d of %d: exit %d\n%s", at, last, o.code, o.output)
		}
		source, _ := b.judge(w).sides(ctx, t)
		faults := append(held("the source", w.sourceBefore, source), b.judge(w).unchanged("the source", w.sourceBefore, source)...)
		b.hold(t, faults, fmt.Sprintf("an abort without the target, after write %d", at), o)
		b.undo(ctx, t, w, machine, fmt.Sprintf("an abort without the target, after write %d; then with it", at))
	}
	machine = w.restore(ctx, t, w.beginning)
	if _, struck := b.killed(ctx, t, w, handOver, machine, kill{last, killAfter}); !struck {
		t.Fatalf("it came to its end before write %d", last)
	}
	if o := w.execute(ctx, t, b.program, abortAlone, machine, lost()); o.code == 0 {
		t.Errorf("the target may have taken over, and an abort without it says that all is as before:\n%s", o.output)
	}
	b.finish(ctx, t, w, machine, "after an abort that refused")
}
