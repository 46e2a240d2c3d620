//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// snapshotFile is what backup leaves in a machine's folder for restore.
const snapshotFile = "snapshot.json"

type snapshotContent struct {
	Source    handover.Party  `json:"source"`
	Available []string        `json:"available"`
	Epoch     int64           `json:"epoch"`
	Objects   []capi.Portable `json:"objects"`
}

// writeSnapshot is the program under test that takes a snapshot.
func writeSnapshot(ctx context.Context, source handover.Side) error {
	manager, err := capi.New(source.Client)
	if err != nil {
		return err
	}
	graph, err := manager.Graph(ctx, capi.GraphOptions{WithFlux: true})
	if err != nil {
		return err
	}
	s := snapshotContent{Source: handover.Party{Name: source.Name}, Available: graph.Available(), Epoch: graph.Epoch()}
	if s.Source.UID, err = handover.ClusterUID(ctx, source.Client); err != nil {
		return err
	}
	if s.Objects, err = graph.Portable(); err != nil {
		return err
	}
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(os.Getenv("HOME"), snapshotFile), content, 0o600)
}

// readSnapshot is the program under test that restores one, or tries to.
func readSnapshot(
	ctx context.Context,
	o handover.Options,
	how func(context.Context, handover.RestoreOptions) (*handover.Report, error),
) error {
	content, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), snapshotFile))
	if err != nil {
		return err
	}
	var s snapshotContent
	if err := json.Unmarshal(content, &s); err != nil {
		return err
	}
	_, err = how(ctx, handover.RestoreOptions{
		Fleet: o.Fleet, Target: o.Target, Snapshot: "20260101T000000Z-abcdef", Source: s.Source, Objects: s.Objects,
		Available: s.Available, Epoch: s.Epoch,
		Drain: o.Drain, Progress: o.Progress,
	})
	return err
}

// restored is what has to hold once a restore has said that it is done. The source is out of the world for the target.
func (j judge) restored(ctx context.Context, t testing.TB) []string {
	t.Helper()
	_, target := j.sides(ctx, t)
	faults := append(j.arrived(target), held("the target", j.world.sourceBefore, target)...)
	faults = append(faults, orphans("the target", target)...)
	faults = append(faults, fences("the target", target)...)
	for i, obj := range j.world.targetBefore {
		faults = append(faults, j.compare("at the target", obj, target[i], i)...)
	}
	return faults
}

// TestRestore takes a snapshot of the source and gives it to the target, without the source: whole, and killed before and after writes of
// it, then again or undone, from the same machine or another one.
func TestRestore(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	gone := func() *run { return &run{away: func(side string) bool { return side == "source" }} }
	snapshots := map[*world][]byte{}
	writes := 0
	for _, w := range b.worlds {
		ctx := t.Context()
		snapshots[w] = b.backedUp(t, w)
		machine := newMachine(t)
		if err := os.WriteFile(filepath.Join(machine, snapshotFile), snapshots[w], 0o600); err != nil {
			t.Fatal(err)
		}
		o := w.execute(ctx, t, b.program, restore, machine, gone())
		if o.code != 0 {
			t.Fatalf("a restore: exit %d\n%s", o.code, o.output)
		}
		b.hold(t, b.judge(w).restored(ctx, t), "a restore", o)
		writes = o.count()
		if o = w.execute(ctx, t, b.program, restore, machine, gone()); o.code != 0 || o.count() != 0 {
			t.Errorf("again: exit %d after %d writes\n%s", o.code, o.count(), o.output)
		}
		if o = w.execute(ctx, t, b.program, abortRestore, machine, gone()); o.count() != 0 {
			t.Errorf("an abort afterwards writes %d times\n%s", o.count(), o.output)
		}
	}
	t.Logf("a restore takes %d writes", writes)
	newHome := func(t *testing.T, w *world) string {
		machine := newMachine(t)
		if err := os.WriteFile(filepath.Join(machine, snapshotFile), snapshots[w], 0o600); err != nil {
			t.Fatal(err)
		}
		return machine
	}
	forEach(t, b, "kills of a restore", b.share(everyWrite(writes), max(1, *kills/5)), func(t *testing.T, w *world, k kill) {
		ctx := t.Context()
		w.restore(ctx, t, w.beginning)
		machine := newHome(t, w)
		r := gone()
		r.judge = k.strike
		if o := w.execute(ctx, t, b.program, restore, machine, r); len(o.struck) == 0 {
			return
		}
		b.kills.Add(1)
		story := "a restore, " + k.String()
		if k.at%3 == 0 {
			machine, story = newHome(t, w), story+", from another machine"
		}
		b.endRestore(t, w, machine, story, (k.deed == killBefore) == (k.at%2 == 0))
	})
	const parts = 6 // of a restore
	var full []int
	for part := range parts {
		full = append(full, 1+part*writes/parts+b.random.IntN(writes/parts))
	}
	forEach(t, b, "a restore on a full disk", full, func(t *testing.T, w *world, at int) {
		ctx := t.Context()
		w.restore(ctx, t, w.beginning)
		machine := newHome(t, w)
		r := gone()
		r.judge = func(write write) deed {
			if write.number == at {
				w.fill("target", true)
			}
			return pass
		}
		o := w.execute(ctx, t, b.program, restore, machine, r)
		w.fill("target", false)
		story := fmt.Sprintf("a restore, the disk of the target is full from write %d on", at)
		t.Logf("%s: exit %d after %s", story, o.code, o.took.Round(time.Millisecond))
		if o.code == 0 {
			b.hold(t, b.judge(w).restored(ctx, t), story, o)
			return
		}
		b.endRestore(t, w, machine, story, at%2 == 0)
	})
}

// backedUp returns a snapshot of the source. Taking it writes nothing.
func (b *bed) backedUp(t *testing.T, w *world) []byte {
	t.Helper()
	ctx := t.Context()
	machine := w.restore(ctx, t, w.beginning)
	if o := w.execute(ctx, t, b.program, backUp, machine, &run{}); o.code != 0 || o.count() != 0 {
		t.Fatalf("a snapshot: exit %d after %d writes\n%s", o.code, o.count(), o.output)
	}
	content, err := os.ReadFile(filepath.Join(machine, snapshotFile))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// endRestore runs a restore to its end that did not come there, or undoes it; where that says that only forward is left, it finishes.
func (b *bed) endRestore(t *testing.T, w *world, machine, story string, undo bool) {
	t.Helper()
	ctx := t.Context()
	gone := func() *run { return &run{away: func(side string) bool { return side == "source" }} }
	if undo {
		o := w.execute(ctx, t, b.program, abortRestore, machine, gone())
		if o.code == 0 && !finished(ctx, t, w) {
			_, target := b.judge(w).sides(ctx, t)
			b.hold(t, b.judge(w).unchanged("the target", w.targetBefore, target), story+", then undone", o)
			return
		}
		story += fmt.Sprintf(", then an abort that said %q", lastLine(o.output))
	}
	o := w.execute(ctx, t, b.program, restore, machine, gone())
	if o.code != 0 {
		t.Errorf("%s, then again: exit %d:\n%s", story, o.code, o.output)
		return
	}
	b.hold(t, b.judge(w).restored(ctx, t), story+", then again", o)
}

// finished tells whether the target's journal says that a restore is done: an abort has nothing to undo then.
func finished(ctx context.Context, t testing.TB, w *world) bool {
	t.Helper()
	j, err := handover.ReadJournal(ctx, clientOf(t, w.target))
	if err != nil {
		t.Fatal(err)
	}
	return j != nil && j.Snapshot != "" && j.Phase == handover.PhaseReleased
}

func clientOf(t testing.TB, s *side) *kube.Client {
	t.Helper()
	client, err := kube.New(s.kubeconfig, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
