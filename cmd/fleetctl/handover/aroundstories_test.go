//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/handover"
)

// aroundStories are those of a restore by another tool that a kill at a write of chance may miss.
func aroundStories(t *testing.T, b *bed, gone func() *run, must func(t *testing.T, w *world, verb, story string) outcome) {
	t.Helper()
	w, ctx := b.worlds[0], t.Context()
	restored := func(t *testing.T) {
		t.Helper()
		w.restore(ctx, t, w.beginning)
		must(t, w, fence, t.Name())
		w.veleroRestores(ctx, t)
	}
	t.Run("killed once the fence closes", func(t *testing.T) {
		restored(t)
		r, policies := gone(), 0
		r.judge = func(w write) deed {
			if w.method == http.MethodPut && strings.Contains(w.path, "validatingadmissionpolicies/") {
				policies++
			}
			if policies == 2 { // the first one makes the fence this run's, the second closes it
				return killAfter
			}
			return pass
		}
		if o := w.execute(ctx, t, b.program, takeIn, newMachine(t), r); len(o.struck) == 0 {
			t.Fatalf("it was not killed\n%s", o.output)
		}
		o := must(t, w, takeIn, t.Name())
		b.hold(t, b.judge(w).takenIn(ctx, t), t.Name(), o)
	})
	t.Run("undone before the Clusters come", func(t *testing.T) {
		w.restore(ctx, t, w.beginning)
		must(t, w, fence, t.Name())
		w.veleroRestores(ctx, t, "Cluster", "ClusterClass", "ClusterResourceSet")
		o := must(t, w, abortRestore, t.Name())
		// Without a Cluster nothing tells whose a Secret is, and nobody acts on one.
		faults := slices.DeleteFunc(b.judge(w).undone(ctx, t), func(fault string) bool { return strings.HasPrefix(fault, "left: Secret. ") })
		b.hold(t, faults, t.Name(), o)
	})
	t.Run("undone beside what was there", func(t *testing.T) {
		w.restore(ctx, t, w.beginning)
		own := w.ownSecrets(ctx, t)
		must(t, w, fence, t.Name())
		w.veleroRestores(ctx, t)
		r, repaired := gone(), false
		r.judge = func(w write) deed {
			repaired = repaired || w.method == http.MethodPatch && strings.Contains(w.path, "/machines/")
			if repaired && w.method == http.MethodPut && strings.HasSuffix(w.path, "/fleetctl-handover") {
				return killBefore
			}
			return pass
		}
		if o := w.execute(ctx, t, b.program, takeIn, newMachine(t), r); len(o.struck) == 0 {
			t.Fatalf("it was not killed\n%s", o.output)
		}
		o := must(t, w, abortRestore, t.Name())
		left := w.target.read(ctx, t)
		for _, i := range own {
			if left[i] == nil {
				t.Errorf("the abort took away %s, which was there before\n%s", i, o.output)
			}
		}
	})
	t.Run("what comes while the fence closes is judged", func(t *testing.T) {
		restored(t)
		client := clientOf(t, w.target)
		options := handover.AroundOptions{
			Fleet: "bed", Target: handover.Side{Name: "target", Client: client},
			Admit: "velero", Drain: time.Minute,
		}
		refused, seen := errors.New("late is another's"), 0
		options.Check = func(ctx context.Context, a *handover.Arrival) error {
			if seen++; seen == 1 {
				return w.veleroMakes(ctx, t, "late")
			}
			if slices.Contains(a.Clusters, "team-a/late") {
				return refused
			}
			return nil
		}
		if _, err := handover.TakeIn(ctx, options); !errors.Is(err, refused) {
			t.Errorf("it takes in what nobody has judged: %v", err)
		}
		j, err := handover.ReadJournal(ctx, client)
		if err != nil || !j.Active() || j.Phase.Committed() {
			t.Fatalf("after the refusal: %+v, %v", j, err)
		}
		b.hold(t, w.fencedForVelero(ctx, t), t.Name(), outcome{})
	})
}

// veleroMakes has Velero make one more Cluster.
func (w *world) veleroMakes(ctx context.Context, t testing.TB, name string) error {
	t.Helper()
	cluster := object("cluster.x-k8s.io/v1beta2", "Cluster", "team-a", name, map[string]any{
		"spec": map[string]any{"clusterNetwork": map[string]any{"pods": map[string]any{"cidrBlocks": []any{"10.0.0.0/16"}}}},
	})
	body, err := json.Marshal(cluster)
	if err != nil {
		return err
	}
	r := w.target.resourceOf(t, "cluster.x-k8s.io", "Cluster")
	return w.target.request(ctx, http.MethodPost, r.path("team-a", ""), body, nil, asVelero()...)
}

// ownSecrets makes Secrets at the target, with the names of the Secrets that the restored objects refer to.
func (w *world) ownSecrets(ctx context.Context, t testing.TB) []id {
	t.Helper()
	var own []id
	for i := range w.sourceBefore {
		if i.kind != "Secret" || !isReferenced(i) {
			continue
		}
		err := w.target.request(ctx, http.MethodPost, "/api/v1/namespaces", []byte(`{"metadata":{"name":"`+i.namespace+`"}}`), nil)
		if err != nil && !hasCode(err, http.StatusConflict) {
			t.Fatal(err)
		}
		w.target.must(ctx, t, http.MethodPost, "/api/v1/namespaces/"+i.namespace+"/secrets", []byte(`{"metadata":{"name":"`+i.name+`"}}`), nil)
		own = append(own, i)
	}
	if len(own) == 0 {
		t.Fatal("no Secret is named")
	}
	t.Log(own)
	return own
}
