//go:build e2e

package handover

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/handover"
)

// resting are the Deployments that run on at a standby.
func resting(i id) bool {
	return i.namespace == "cert-manager" || strings.HasPrefix(i.name, "source-controller")
}

// atRest is what has to hold of a standby: nobody acts, nobody can write, and it has nothing of anybody's.
func (w *world) atRest(ctx context.Context, t testing.TB) []string {
	t.Helper()
	w.target.settle(ctx, t)
	var faults []string
	now := w.target.read(ctx, t)
	for i := range now.of("Pod") {
		if !resting(i) {
			faults = append(faults, fmt.Sprintf("running: %s", i))
		}
	}
	for i := range now {
		if travels(i) {
			faults = append(faults, fmt.Sprintf("left: %s", i))
		}
	}
	for i := range w.targetBefore {
		if i.kind != "Pod" && now[i] == nil {
			faults = append(faults, fmt.Sprintf("lost: %s", i))
		}
		if i.kind == "Pod" && resting(i) && now[i] == nil {
			faults = append(faults, fmt.Sprintf("stopped: %s", i))
		}
	}
	cluster := []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"probe"},` +
		`"spec":{"clusterNetwork":{"pods":{"cidrBlocks":["10.0.0.0/16"]}}}}`)
	const path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters?dryRun=All"
	if err := w.target.request(ctx, http.MethodPost, path, cluster, nil, asStranger()...); !hasCode(err, http.StatusForbidden) {
		faults = append(faults, fmt.Sprintf("a stranger makes a Cluster: %v", err))
	}
	j, err := handover.ReadJournal(ctx, clientOf(t, w.target))
	if err != nil || !j.IsStandby() {
		faults = append(faults, fmt.Sprintf("the journal says %+v, %v", j, err))
	}
	return faults
}

// activated tells whether the target's journal says that it has taken over, or will: an abort is refused then.
func activated(ctx context.Context, t testing.TB, w *world) bool {
	t.Helper()
	j, err := handover.ReadJournal(ctx, clientOf(t, w.target))
	if err != nil {
		t.Fatal(err)
	}
	return j != nil && j.Activates && j.Phase.Committed()
}

// standbyBed is worlds whose target is a standby of the source, with a snapshot of that. at has them as they are then.
type standbyBed struct {
	*bed
	snapshots map[*world][]byte
	at        map[*world]moment
}

// machine is one that has the snapshot, and knows nothing else.
func (b *standbyBed) machine(t testing.TB, w *world) string {
	t.Helper()
	machine := newMachine(t)
	if err := os.WriteFile(filepath.Join(machine, snapshotFile), b.snapshots[w], 0o600); err != nil {
		t.Fatal(err)
	}
	return machine
}

// must runs the program to its end.
func (b *standbyBed) must(t testing.TB, w *world, verb, story string, r *run) outcome {
	t.Helper()
	o := w.execute(t.Context(), t, b.program, verb, b.machine(t, w), r)
	if o.code != 0 {
		t.Fatalf("%s: %s: exit %d\n%s", story, verb, o.code, o.output)
	}
	return o
}

// nothing runs the program, which has to do nothing, and returns how it ended.
func (b *standbyBed) nothing(t testing.TB, w *world, verb string, code int, says string) {
	t.Helper()
	o := w.execute(t.Context(), t, b.program, verb, b.machine(t, w), &run{})
	if o.code != code || o.count() != 0 || !strings.Contains(o.output, says) {
		t.Errorf("%s: exit %d after %d writes\n%s", verb, o.code, o.count(), o.output)
	}
}

func sourceGone() *run { return &run{away: func(side string) bool { return side == "source" }} }

// TestStandby makes the target a standby, tries a snapshot on it, and has it take over: from a source that is gone, and from a source
// that lives. It kills each of these commands before and after writes, and then runs the command again or undoes it.
func TestStandby(t *testing.T) {
	b := &standbyBed{
		bed:       newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true),
		snapshots: map[*world][]byte{}, at: map[*world]moment{},
	}
	writes := map[string]int{}
	for _, w := range b.worlds {
		ctx := t.Context()
		machine := w.restore(ctx, t, w.beginning)
		if o := w.execute(ctx, t, b.program, backUp, machine, &run{}); o.code != 0 {
			t.Fatalf("a snapshot: exit %d\n%s", o.code, o.output)
		}
		content, err := os.ReadFile(filepath.Join(machine, snapshotFile))
		if err != nil {
			t.Fatal(err)
		}
		b.snapshots[w] = content
		b.nothing(t, w, activate, 1, "is no standby")
		o := b.must(t, w, makeStandby, "a standby", sourceGone())
		writes[makeStandby] = o.count()
		b.hold(t, w.atRest(ctx, t), "a standby", o)
		o = b.must(t, w, makeAnothers, "a standby of another one", sourceGone())
		b.hold(t, w.atRest(ctx, t), "a standby of another one", o)
		b.nothing(t, w, restore, 1, "is a standby of other")
		b.must(t, w, makeStandby, "a standby again", sourceGone())
		b.at[w] = w.save(ctx, t, "")
		b.nothing(t, w, makeStandby, 0, "")
		for _, verb := range []string{restore, handOver, fence, transfer} {
			b.nothing(t, w, verb, 1, "is a standby of source")
		}
		b.nothing(t, w, abortActivate, 0, "")
		o = b.must(t, w, try, "a try", sourceGone())
		writes[try] = o.count()
		b.hold(t, w.atRest(ctx, t), "a try", o)
		b.hold(t, b.judge(w).unchanged("the source", w.sourceBefore, w.source.read(ctx, t)), "a try", o)
		o = b.must(t, w, activate, "an activation", sourceGone())
		writes[activate] = o.count()
		b.hold(t, b.judge(w).restored(ctx, t), "an activation", o)
		b.nothing(t, w, activate, 0, "")
		b.nothing(t, w, abortActivate, 0, "")
		b.nothing(t, w, try, 1, "it has taken over from source")
		b.nothing(t, w, makeStandby, 1, "it cannot be a standby")
		w.restore(ctx, t, b.at[w])
		o = b.must(t, w, relieve, "a relief", &run{})
		writes[relieve] = o.count()
		b.hold(t, b.judge(w).handedOver(ctx, t), "a relief", o)
		b.nothing(t, w, relieve, 0, "")
		b.sourceLost(t, w, writes[relieve]/4)
	}
	t.Logf("writes: %v", writes)
	b.killAtRest(t, writes)
	b.killTakingOver(t, writes)
}

// sourceLost ends a relief after so many writes of it, and the source with it: the standby alone goes back to rest.
func (b *standbyBed) sourceLost(t *testing.T, w *world, writes int) {
	t.Helper()
	ctx := t.Context()
	w.restore(ctx, t, b.at[w])
	w.execute(ctx, t, b.program, relieve, b.machine(t, w), &run{judge: kill{writes, killAfter}.strike})
	j, err := handover.ReadJournal(ctx, clientOf(t, w.target))
	if err != nil || j.IsStandby() || j.Phase.Committed() {
		t.Fatalf("after %d writes the relief is not in the middle: %+v, %v", writes, j, err)
	}
	b.nothing(t, w, try, 1, "is in the middle of")
	o := b.must(t, w, abortWithout, "a relief whose source is lost", sourceGone())
	b.hold(t, w.atRest(ctx, t), "a relief whose source is lost", o)
}

// killAtRest kills what leaves a standby behind: the same again makes it one.
func (b *standbyBed) killAtRest(t *testing.T, writes map[string]int) {
	t.Helper()
	for _, verb := range []string{makeStandby, try} {
		forEach(t, b.bed, "kills of "+verb, b.share(everyWrite(writes[verb]), max(1, *kills/8)), func(t *testing.T, w *world, k kill) {
			ctx := t.Context()
			if verb == makeStandby {
				w.restore(ctx, t, w.beginning)
			} else {
				w.restore(ctx, t, b.at[w])
			}
			r := sourceGone()
			r.judge = k.strike
			if o := w.execute(ctx, t, b.program, verb, b.machine(t, w), r); len(o.struck) == 0 {
				return
			}
			b.kills.Add(1)
			story := verb + ", " + k.String()
			if verb == try && k.at%2 == 0 { // one that is killed is nothing that keeps the standby from taking over
				o := b.must(t, w, abortActivate, story, sourceGone())
				b.hold(t, w.atRest(ctx, t), story+", then undone", o)
				return
			}
			o := b.must(t, w, verb, story, sourceGone())
			b.hold(t, w.atRest(ctx, t), story+", then again", o)
		})
	}
}

// killTakingOver kills what gives the standby the work: the same again finishes it, or an abort leaves a standby behind.
func (b *standbyBed) killTakingOver(t *testing.T, writes map[string]int) {
	t.Helper()
	for verb, undo := range map[string]string{activate: abortActivate, relieve: abortRelieve} {
		begin := func() *run {
			if verb == activate {
				return sourceGone()
			}
			return &run{}
		}
		forEach(t, b.bed, "kills of "+verb, b.share(everyWrite(writes[verb]), max(1, *kills/8)), func(t *testing.T, w *world, k kill) {
			ctx := t.Context()
			w.restore(ctx, t, b.at[w])
			r := begin()
			r.judge = k.strike
			if o := w.execute(ctx, t, b.program, verb, b.machine(t, w), r); len(o.struck) == 0 {
				return
			}
			b.kills.Add(1)
			story := verb + ", " + k.String()
			if (k.deed == killBefore) == (k.at%2 == 0) {
				o := w.execute(ctx, t, b.program, undo, b.machine(t, w), begin())
				if o.code == 0 && !activated(ctx, t, w) {
					faults := w.atRest(ctx, t)
					w.source.settle(ctx, t)
					source := w.source.read(ctx, t)
					faults = append(faults, held("the source", w.sourceBefore, source)...)
					b.hold(t, append(faults, b.judge(w).unchanged("the source", w.sourceBefore, source)...), story+", then undone", o)
					return
				}
				story += fmt.Sprintf(", then an abort that said %q", lastLine(o.output))
			}
			o := b.must(t, w, verb, story+", then again", begin())
			if verb == activate {
				b.hold(t, b.judge(w).restored(ctx, t), story+", then again", o)
				return
			}
			b.hold(t, b.judge(w).handedOver(ctx, t), story+", then again", o)
		})
	}
}
