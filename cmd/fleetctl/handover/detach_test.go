//go:build e2e

package handover

import (
	"context"
	"fmt"
	"testing"
)

// detached returns what is wrong at the source after a Cluster was detached: the Cluster and its objects must be gone, and every other
// object must be as before.
func (j judge) detached(ctx context.Context, t testing.TB) (faults []string, left map[id]bool) {
	t.Helper()
	source, target := j.sides(ctx, t)
	left = map[id]bool{}
	rest := snapshot{}
	for i, obj := range j.world.sourceBefore {
		_, there := source[i]
		switch {
		case i.namespace != "team-a" || there:
			rest[i] = obj
		case i.kind == "HelmRelease" || i.kind == "Kustomization":
			faults = append(faults, fmt.Sprintf("lost: %s is Flux's to keep", i))
		}
	}
	for i := range source {
		left[i] = true
		if i.namespace == "team-a" && (i.kind == "Cluster" || i.kind == "Machine" || i.kind == "MachineDeployment") {
			faults = append(faults, fmt.Sprintf("left: %s", i))
		}
	}
	faults = append(faults, held("the source", rest, source)...)
	faults = append(faults, j.unchanged("the source", rest, source)...)
	faults = append(faults, orphans("the source", source)...)
	faults = append(faults, fences("the source", source)...)
	return append(faults, j.unchanged("the target", j.world.targetBefore, target)...), left
}

// TestDetach takes a Cluster away from the source: whole, and killed before and after writes of it, then again. Each ends as the first did.
func TestDetach(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	w := b.worlds[0]
	ctx := t.Context()
	gone := func() *run { return &run{away: func(side string) bool { return side == "target" }} }
	machine := w.restore(ctx, t, w.beginning)
	whole := w.execute(ctx, t, b.program, detach, machine, gone())
	if whole.code != 0 {
		t.Fatalf("exit %d\n%s", whole.code, whole.output)
	}
	faults, left := b.judge(w).detached(ctx, t)
	b.hold(t, faults, "a cluster is detached", whole)
	if o := w.execute(ctx, t, b.program, detach, machine, gone()); o.code == 0 || o.count() != 0 {
		t.Errorf("again: exit %d after %d writes: there is no such cluster any more\n%s", o.code, o.count(), o.output)
	}
	t.Logf("it takes %d writes, and leaves %d of %d objects", whole.count(), len(left), len(w.sourceBefore))
	forEach(t, b, "kills of a detachment", b.share(everyWrite(whole.count()), max(1, *kills/8)), func(t *testing.T, w *world, k kill) {
		ctx := t.Context()
		machine := w.restore(ctx, t, w.beginning)
		r := gone()
		r.judge = k.strike
		if o := w.execute(ctx, t, b.program, detach, machine, r); len(o.struck) == 0 {
			return
		}
		b.kills.Add(1)
		o := w.execute(ctx, t, b.program, detach, newMachine(t), gone())
		faults, now := b.judge(w).detached(ctx, t)
		last := k.at == whole.count() && k.deed == killAfter
		if o.code != 0 && !last { // after the last write there is nothing to do any more
			t.Errorf("%s, then again: exit %d:\n%s", k, o.code, o.output)
		}
		for i := range now {
			if !left[i] {
				faults = append(faults, fmt.Sprintf("left: %s", i))
			}
		}
		for i := range left {
			if !now[i] && i.kind != "Pod" {
				faults = append(faults, fmt.Sprintf("lost: %s", i))
			}
		}
		b.hold(t, faults, "a detachment, "+k.String()+", then again", o)
	})
}
