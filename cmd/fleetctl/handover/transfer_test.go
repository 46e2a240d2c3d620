//go:build e2e

package handover

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/handover"
)

// transferred returns what is wrong after one Cluster was handed over: the Cluster's objects must be at the target and not at the source,
// and every other object must be as before. went are the objects that have left the source.
func (j judge) transferred(ctx context.Context, t testing.TB) (faults []string, went map[id]bool) {
	t.Helper()
	source, target := j.sides(ctx, t)
	went = map[id]bool{}
	rest := snapshot{}
	for i, obj := range j.world.sourceBefore {
		if source[i] != nil || i.namespace != "team-a" {
			rest[i] = obj
			if i.namespace == "team-a" && i.kind == "Machine" {
				faults = append(faults, fmt.Sprintf("doubled or left: %s is at the source", i))
			}
			continue
		}
		went[i] = true
		if i.kind == "HelmRelease" || i.kind == "Kustomization" {
			faults = append(faults, fmt.Sprintf("lost: %s is Flux's to keep", i))
		}
		faults = append(faults, j.compare("at the target", obj, withoutMarks(target[i]), i)...)
	}
	faults = append(faults, held("the source", rest, source)...)
	faults = append(faults, held("the target", j.world.sourceBefore, target)...)
	for _, fault := range j.unchanged("the source", rest, source) {
		if !strings.Contains(fault, handover.JournalKey.String()) { // it knows of its last hand-over
			faults = append(faults, fault)
		}
	}
	faults = append(faults, twoOwners(source, target)...)
	for where, side := range map[string]snapshot{"the source": source, "the target": target} {
		faults = append(faults, orphans(where, side)...)
		faults = append(faults, fences(where, side)...)
	}
	for i, obj := range j.world.targetBefore {
		faults = append(faults, j.compare("at the target", obj, target[i], i)...)
	}
	for i := range target {
		if i.namespace == "team-a" && i.kind != "Namespace" && !went[i] && !isReferenced(i) && source[i] == nil {
			faults = append(faults, fmt.Sprintf("from nowhere: %s is at the target", i))
		}
	}
	return faults, went
}

// fewestOfACluster is how many objects one Cluster of the source is made of at least.
const fewestOfACluster = 15

// ownClusters gives the target a further Cluster, which is not handed over.
func ownClusters(t *testing.T) func(*seeder) {
	return func(s *seeder) {
		s.file(t.Context(), t, "shared.yaml", "NAMESPACE", "team-d")
		s.file(t.Context(), t, "plain.yaml", "NAMESPACE", "team-d", "NAME", "delta")
	}
}

// TestTransfer hands one Cluster of the source to a target that has clusters of its own, whose controllers stay at work. One run has no
// faults. Other runs are killed before and after writes, and then run again or undone, from the same machine or another machine.
func TestTransfer(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true, ownClusters(t))
	w := b.worlds[0]
	ctx := t.Context()
	machine := w.restore(ctx, t, w.beginning)
	whole := w.execute(ctx, t, b.program, transfer, machine, &run{})
	if whole.code != 0 {
		t.Fatalf("exit %d\n%s", whole.code, whole.output)
	}
	faults, went := b.judge(w).transferred(ctx, t)
	if len(went) < fewestOfACluster {
		faults = append(faults, fmt.Sprintf("only %d objects went", len(went)))
	}
	b.hold(t, faults, "one Cluster is transferred", whole)
	if o := w.execute(ctx, t, b.program, transfer, machine, &run{}); o.code != 0 || o.count() != 0 {
		t.Errorf("again: exit %d after %d writes\n%s", o.code, o.count(), o.output)
	}
	if o := w.execute(ctx, t, b.program, abortTransfer, machine, &run{}); o.code == 0 || o.count() != 0 {
		t.Errorf("an abort afterwards: exit %d after %d writes\n%s", o.code, o.count(), o.output)
	}
	// The source still has work, which it can hand over as a whole.
	if o := w.execute(ctx, t, b.program, handOver, machine, &run{}); o.code != 0 {
		t.Errorf("the rest, afterwards: exit %d\n%s", o.code, o.output)
	}
	t.Logf("it takes %d writes, and hands over %d of %d objects", whole.count(), len(went), len(w.sourceBefore))
	forEach(t, b, "kills of a transfer", b.share(everyWrite(whole.count()), max(1, *kills/5)), func(t *testing.T, w *world, k kill) {
		ctx := t.Context()
		machine := w.restore(ctx, t, w.beginning)
		if _, struck := b.killed(ctx, t, w, transfer, machine, k); !struck {
			return
		}
		story := "a transfer, " + k.String()
		if k.at%3 == 0 {
			machine, story = newMachine(t), story+", from another machine"
		}
		if (k.deed == killBefore) == (k.at%2 == 0) {
			o := w.execute(ctx, t, b.program, abortTransfer, machine, &run{})
			if o.code == 0 {
				b.hold(t, b.judge(w).asBefore(ctx, t), story+", then undone", o)
				return
			}
			story += fmt.Sprintf(", then an abort that said %q", lastLine(o.output))
		}
		o := w.execute(ctx, t, b.program, transfer, machine, &run{})
		if o.code != 0 {
			t.Errorf("%s, then again: exit %d:\n%s", story, o.code, o.output)
			return
		}
		faults, now := b.judge(w).transferred(ctx, t)
		for i := range went {
			if !now[i] {
				faults = append(faults, fmt.Sprintf("stayed: %s", i))
			}
		}
		b.hold(t, faults, story+", then again", o)
		for _, s := range []*side{w.source, w.target} {
			if j, err := handover.ReadJournal(ctx, clientOf(t, s)); err != nil || j.Active() {
				t.Errorf("%s: the journal says %+v, %v", story, j, err)
			}
		}
	})
}
