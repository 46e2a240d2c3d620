//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/handover"
)

// asVelero are the headers of a request that Velero's service account sends.
func asVelero() []string {
	return []string{
		"Impersonate-User", "system:serviceaccount:velero:velero-server",
		"Impersonate-Group", "system:serviceaccounts:velero", "Impersonate-Group", "system:masters",
	}
}

// asStranger are those of an administrator who knows of nothing.
func asStranger() []string {
	return []string{"Impersonate-User", "stranger", "Impersonate-Group", "system:masters"}
}

// others are the Clusters that another management cluster has by now: they come back paused.
func others(i id) bool { return i.kind == "Cluster" && i.name == "beta" }

// around finds the clusters of other owners by a check, as the command does. A run that continues has to make this check again.
func around(o handover.Options) handover.AroundOptions {
	found := map[string]bool{}
	return handover.AroundOptions{
		Fleet: o.Fleet, Target: o.Target, Admit: "velero", Drain: o.Drain, Progress: o.Progress,
		Check: func(_ context.Context, a *handover.Arrival) error {
			for _, cluster := range a.Clusters {
				namespace, name, _ := strings.Cut(cluster, "/")
				found[cluster] = others(id{group: "cluster.x-k8s.io", kind: "Cluster", namespace: namespace, name: name})
			}
			return nil
		},
		Paused: func(cluster string) bool { return found[cluster] },
	}
}

// backedUp tells whether Velero's backup has an object. It has the objects of the fleet's namespaces and the objects that they refer to,
// and all that Flux needs.
func backedUp(i id) bool {
	if i.kind == "Pod" || i.kind == "Namespace" {
		return false
	}
	return slices.Contains(fleetNamespaces, i.namespace) || isReferenced(i) || i.namespace == "flux-system" && i.kind != "Deployment"
}

// asRestored is an object as Velero makes it again: `resetMetadataAndStatus` and `addRestoreLabels` of its restore.
func asRestored(obj *unstructured.Unstructured) *unstructured.Unstructured {
	o := obj.DeepCopy()
	for _, field := range []string{
		"generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds",
		"ownerReferences", "managedFields",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	delete(o.Object, "status")
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["velero.io/backup-name"], labels["velero.io/restore-name"] = "nightly", "nightly-1"
	o.SetLabels(labels)
	return o
}

// veleroRestores makes the source's objects at the target, except objects of the kinds in not. It goes by the names of the kinds, because
// no object needs its owner first. Like Velero, it does not change an existing object, and it restores the managed fields.
func (w *world) veleroRestores(ctx context.Context, t testing.TB, not ...string) {
	t.Helper()
	ids := slices.SortedFunc(maps.Keys(w.sourceBefore), func(a, b id) int { return strings.Compare(a.String(), b.String()) })
	for _, i := range ids {
		if !backedUp(i) || slices.Contains(not, i.kind) {
			continue
		}
		if i.namespace != "" {
			err := w.target.request(ctx, http.MethodPost, "/api/v1/namespaces", []byte(`{"metadata":{"name":"`+i.namespace+`"}}`), nil)
			if err != nil && !hasCode(err, http.StatusConflict) {
				t.Fatal(err)
			}
		}
		r := w.target.resourceOf(t, i.group, i.kind)
		body, err := json.Marshal(asRestored(w.sourceBefore[i]))
		if err != nil {
			t.Fatal(err)
		}
		err = w.target.request(ctx, http.MethodPost, r.path(i.namespace, ""), body, nil, asVelero()...)
		if hasCode(err, http.StatusConflict) {
			continue
		}
		if err != nil {
			t.Fatalf("Velero cannot restore %s: %v", i, err)
		}
		fields, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": w.sourceBefore[i].GetManagedFields()}})
		if err == nil {
			err = w.target.request(ctx, http.MethodPatch, r.path(i.namespace, i.name), fields, nil, asVelero()...)
		}
		if err != nil {
			t.Fatalf("Velero cannot restore the managed fields of %s: %v", i, err)
		}
	}
}

// ownersUnknown tells that nothing in an object of Cluster API's says who owned it: its provider finds it again.
func ownersUnknown(i id) bool {
	return i.kind == "IPAddressClaim" || i.kind == "ResourceGroup" || i.name == "prod-identity"
}

// takenIn is what has to hold once what Velero has restored is taken in.
func (j judge) takenIn(ctx context.Context, t testing.TB) []string {
	t.Helper()
	_, target := j.sides(ctx, t)
	var faults []string
	for i, before := range j.world.sourceBefore {
		if !backedUp(i) || j.world.targetBefore[i] != nil {
			continue
		}
		now := target[i]
		if now == nil {
			faults = append(faults, fmt.Sprintf("lost: %s", i))
			continue
		}
		want, have := before.DeepCopy(), withoutMarks(now)
		for _, label := range []string{"velero.io/backup-name", "velero.io/restore-name"} {
			unstructured.RemoveNestedField(have.Object, "metadata", "labels", label)
		}
		if len(have.GetLabels()) == 0 {
			unstructured.RemoveNestedField(have.Object, "metadata", "labels")
		}
		if ownersUnknown(i) {
			unstructured.RemoveNestedField(want.Object, "metadata", "ownerReferences")
		}
		if others(i) {
			if !isHeld(now) {
				faults = append(faults, fmt.Sprintf("two owners: %s, which another has, is acted on", i))
			}
			unstructured.RemoveNestedField(want.Object, "spec", "paused")
			unstructured.RemoveNestedField(have.Object, "spec", "paused")
		}
		faults = append(faults, j.compare("at the target", want, have, i)...)
		faults = append(faults, decides(i, before, now)...)
	}
	own := maps.Clone(j.world.sourceBefore)
	maps.DeleteFunc(own, func(i id, _ *unstructured.Unstructured) bool { return others(i) })
	faults = append(faults, held("the target", own, target)...)
	faults = append(faults, orphans("the target", target)...)
	faults = append(faults, fences("the target", target)...)
	for i, obj := range j.world.targetBefore {
		faults = append(faults, j.compare("at the target", obj, target[i], i)...)
	}
	return faults
}

// decides compares the initialization of two statuses. The new status must have what a cluster with Machines needs, and nothing that the
// old status lacks.
func decides(i id, before, now *unstructured.Unstructured) []string {
	was, _, _ := unstructured.NestedMap(before.Object, "status", "initialization")
	is, _, _ := unstructured.NestedMap(now.Object, "status", "initialization")
	var faults []string
	if i.name == "alpha" && i.kind != "DockerCluster" || i.kind == "Machine" {
		if d := cmp.Diff(was, is); d != "" {
			faults = append(faults, fmt.Sprintf("status: of %s (-before +after):\n%s", i, d))
		}
	}
	for field, value := range is {
		if was[field] != value {
			faults = append(faults, fmt.Sprintf("made up: %s of %s is %v", field, i, value))
		}
	}
	return faults
}

// fencedForVelero is what has to hold between the two runs: nobody acts, and nobody but Velero writes.
func (w *world) fencedForVelero(ctx context.Context, t testing.TB) []string {
	t.Helper()
	w.target.settle(ctx, t)
	var faults []string
	for i := range w.target.read(ctx, t).of("Pod") {
		if i.namespace != "cert-manager" {
			faults = append(faults, fmt.Sprintf("running: %s", i))
		}
	}
	cluster := []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"probe"},` +
		`"spec":{"clusterNetwork":{"pods":{"cidrBlocks":["10.0.0.0/16"]}}}}`)
	const path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters?dryRun=All"
	if err := w.target.request(ctx, http.MethodPost, path, cluster, nil, asStranger()...); !hasCode(err, http.StatusForbidden) {
		faults = append(faults, fmt.Sprintf("a stranger makes a Cluster: %v", err))
	}
	if err := w.target.request(ctx, http.MethodPost, path, cluster, nil, asVelero()...); err != nil {
		faults = append(faults, fmt.Sprintf("Velero is kept away: %v", err))
	}
	return faults
}

// undone returns what is wrong after an abort. Without a Cluster, no controller acts on the objects that an abort leaves: Secrets that
// other objects only name, and objects of which nobody can tell the Cluster. All controllers run as before.
func (j judge) undone(ctx context.Context, t testing.TB) []string {
	t.Helper()
	_, target := j.sides(ctx, t)
	for i := range target {
		if isReferenced(i) || j.world.targetBefore[i] == nil &&
			(i.kind == "ResourceGroup" || i.group == "" && (i.namespace == "flux-system" || i.name == "cni")) {
			delete(target, i)
		}
	}
	return append(j.unchanged("the target", j.world.targetBefore, target), fences("the target", target)...)
}

// TestFenceOnly restores as Velero does, between the two runs of a restore that only fences: whole, and killed before and after writes of
// either run, then run again or undone, from the same machine or another one.
func TestFenceOnly(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, false)
	gone := func() *run { return &run{away: func(side string) bool { return side == "source" }} }
	must := func(t *testing.T, w *world, verb, story string) outcome {
		t.Helper()
		o := w.execute(t.Context(), t, b.program, verb, newMachine(t), gone())
		if o.code != 0 {
			t.Fatalf("%s: %s: exit %d\n%s", story, verb, o.code, o.output)
		}
		return o
	}
	var writes [2]int
	for _, w := range b.worlds {
		ctx := t.Context()
		w.restore(ctx, t, w.beginning)
		if o := w.execute(ctx, t, b.program, takeIn, newMachine(t), gone()); o.code == 0 || o.count() != 0 {
			t.Errorf("without a fence: exit %d after %d writes\n%s", o.code, o.count(), o.output)
		}
		o := must(t, w, fence, "a fence")
		writes[0] = o.count()
		b.hold(t, w.fencedForVelero(ctx, t), "a fence", o)
		if o := must(t, w, fence, "a fence again"); o.count() != 0 {
			t.Errorf("a fence again: %d writes\n%s", o.count(), o.output)
		}
		o = w.execute(ctx, t, b.program, handOver, newMachine(t), &run{})
		if o.code == 0 || o.count() != 0 || !strings.Contains(o.output, "is fenced, so that another tool can restore into it") {
			t.Errorf("a hand-over to it: exit %d after %d writes\n%s", o.code, o.count(), o.output)
		}
		w.veleroRestores(ctx, t)
		o = must(t, w, takeIn, "a restore")
		writes[1] = o.count()
		b.hold(t, b.judge(w).takenIn(ctx, t), "a restore", o)
		for _, verb := range []string{takeIn, abortRestore} {
			if o := w.execute(ctx, t, b.program, verb, newMachine(t), gone()); o.code != 0 || o.count() != 0 {
				t.Errorf("%s afterwards: exit %d after %d writes\n%s", verb, o.code, o.count(), o.output)
			}
		}
	}
	t.Logf("a fence takes %d writes, taking in takes %d", writes[0], writes[1])
	aroundStories(t, b, gone, must)
	for n, verb := range []string{fence, takeIn} {
		forEach(t, b, "kills of "+verb, b.share(everyWrite(writes[n]), max(1, *kills/8)), func(t *testing.T, w *world, k kill) {
			ctx := t.Context()
			w.restore(ctx, t, w.beginning)
			story := verb + ", " + k.String()
			if verb == takeIn {
				must(t, w, fence, story)
				w.veleroRestores(ctx, t)
			}
			r := gone()
			r.judge = k.strike
			if o := w.execute(ctx, t, b.program, verb, newMachine(t), r); len(o.struck) == 0 {
				return
			}
			b.kills.Add(1)
			if (k.deed == killBefore) == (k.at%2 == 0) {
				o := w.execute(ctx, t, b.program, abortRestore, newMachine(t), gone())
				if o.code == 0 && !released(ctx, t, w) {
					b.hold(t, b.judge(w).undone(ctx, t), story+", then undone", o)
					return
				}
				story += fmt.Sprintf(", then an abort that said %q", lastLine(o.output))
			}
			if verb == fence {
				// What is fenced in part is not taken in: a provider may be at work.
				j, err := handover.ReadJournal(ctx, clientOf(t, w.target))
				if err != nil {
					t.Fatal(err)
				}
				if !j.Fenced() {
					if o := w.execute(ctx, t, b.program, takeIn, newMachine(t), gone()); o.code == 0 || o.count() != 0 {
						t.Errorf("%s, then taken in without a fence: exit %d after %d writes\n%s", story, o.code, o.count(), o.output)
					}
				}
				o := must(t, w, fence, story+", then again")
				b.hold(t, w.fencedForVelero(ctx, t), story+", then again", o)
				w.veleroRestores(ctx, t)
			}
			o := must(t, w, takeIn, story)
			b.hold(t, b.judge(w).takenIn(ctx, t), story+", then taken in", o)
		})
	}
}

// released tells whether the target's journal says that all is done: an abort has nothing to undo then.
func released(ctx context.Context, t testing.TB, w *world) bool {
	t.Helper()
	j, err := handover.ReadJournal(ctx, clientOf(t, w.target))
	if err != nil {
		t.Fatal(err)
	}
	return j != nil && j.Around && j.Phase == handover.PhaseReleased
}
