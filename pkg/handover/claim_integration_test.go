//go:build integration

package handover

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// racer is a management cluster that is about to take over the Cluster shop/shop, whose API server has this kubeconfig. It began when the
// record of the Cluster's owner had the fingerprint seen.
func racer(t *testing.T, name string, workload []byte, seen string, epoch int64) *run {
	t.Helper()
	ctx := t.Context()
	mgmt, _ := kubetest.Start(t)
	objects := []func(context.Context) error{
		func(ctx context.Context) error {
			return mgmt.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		},
		func(ctx context.Context) error {
			meta := metav1.ObjectMeta{Namespace: "shop", Name: "shop-kubeconfig"}
			return mgmt.Create(ctx, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": workload}})
		},
	}
	for _, create := range objects {
		if err := create(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r := newRun(Options{})
	var err error
	if r.target, err = lookAtSide(ctx, Side{Name: name, Client: mgmt}); err != nil {
		t.Fatal(err)
	}
	j := &Journal{
		FormatVersion: "1", ID: name, Role: RoleTarget, Phase: PhaseCopied, Fleet: "f", Snapshot: "s", Source: Party{"lost", "u0"},
		Target: r.target.party, Epoch: epoch, Clusters: []string{"shop/shop"}, Owners: map[string]string{"shop/shop": seen},
	}
	if err := r.target.put(ctx, j); err != nil {
		t.Fatal(err)
	}
	return r
}

// Two management clusters that take over the same Cluster at once, from one snapshot, cannot both commit. Who loses can undo what it did,
// and changes nothing of the winner's. Who wins, and then undoes it, leaves the record as it was.
func TestOneOwnerOfARace(t *testing.T) {
	_, workload := kubetest.Start(t)
	ctx := t.Context()
	before := capi.Owner{Fleet: "f", ManagementCluster: "lost", UID: "u0", Epoch: 2} // as late as what both write: it was restored before
	for story, c := range map[string]struct {
		there bool
		epoch int64 // of the second one: the highest of all its Clusters
	}{
		"without a record": {epoch: 1}, "with a record": {there: true, epoch: 1}, "one has later clusters": {there: true, epoch: 7},
	} {
		t.Run(story, func(t *testing.T) {
			client, err := kube.New(workload, kube.Options{})
			if err != nil {
				t.Fatal(err)
			}
			seen := ""
			if c.there {
				record := newRecord(before)
				if err := client.Create(ctx, record); err != nil {
					t.Fatal(err)
				}
				seen = fingerprint(record)
			}
			t.Cleanup(func() {
				ctx := context.WithoutCancel(ctx)
				record, err := ownerRecord(ctx, client)
				if err == nil && record != nil {
					err = client.WithWatch.Delete(ctx, record)
				}
				if err != nil {
					t.Errorf("the record for the next story: %v", err)
				}
			})
			runs := []*run{racer(t, "one", workload, seen, 1), racer(t, "two", workload, seen, c.epoch)}
			errs := make([]error, len(runs))
			var all sync.WaitGroup
			for i, r := range runs {
				all.Go(func() { errs[i] = r.commit(ctx) })
			}
			all.Wait()
			winner, loser := runs[0], runs[1]
			if errs[0] != nil {
				winner, loser, errs[1], errs[0] = loser, winner, errs[0], errs[1]
			}
			if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "shop/shop is managed by "+winner.target.Name) {
				t.Fatalf("%v, %v: not one of the two has taken over", errs[0], errs[1])
			}
			if !winner.target.journal.Phase.Committed() || loser.target.journal.Phase.Committed() {
				t.Errorf("the winner is %s, the loser %s", winner.target.journal.Phase, loser.target.journal.Phase)
			}
			if err := winner.claimOwners(ctx, winner.owner()); err != nil {
				t.Errorf("the winner again: %v", err)
			}
			loser.takeBackClaims(ctx)
			owner, err := readOwner(ctx, workload)
			if err != nil || owner.UID != winner.target.party.UID || owner.Epoch < 2 {
				t.Errorf("after the loser has undone it: %+v, %v", owner, err)
			}
			again := loser.commit(ctx)
			if again == nil || !strings.Contains(again.Error(), "other management clusters have taken over") {
				t.Errorf("the loser again: %v", again)
			}
			winner.target.journal.Epoch-- // as if it was killed before the commit
			winner.takeBackClaims(ctx)
			record, err := ownerRecord(ctx, client)
			if err != nil || fingerprint(record) != seen {
				t.Errorf("after the winner has undone it: %+v, %v", record, err)
			}
			if err := loser.commit(ctx); err != nil {
				t.Errorf("the loser, once the winner has undone it: %v", err)
			}
			loser.target.journal.Epoch--
			loser.takeBackClaims(ctx)
			if warnings := loser.report().Warnings; len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
		})
	}
}

// A Cluster that did not answer when the hand-over began goes to the management cluster of the same name, which is made anew, but not away
// from another one.
func TestClaimOfSilentCluster(t *testing.T) {
	_, workload := kubetest.Start(t)
	ctx := t.Context()
	owner := func(name, uid string, epoch int64) capi.Owner {
		return capi.Owner{Fleet: "f", ManagementCluster: name, UID: uid, Epoch: epoch}
	}
	if err := (claim{owner: owner("first", "u1", 2)}).write(ctx, workload); err != nil {
		t.Fatal(err)
	}
	var taken *takenError
	if err := (claim{owner: owner("second", "u2", 2)}).write(ctx, workload); !errors.As(err, &taken) {
		t.Errorf("another one of the same epoch: %v", err)
	}
	if err := (claim{owner: owner("first", "u3", 2)}).write(ctx, workload); err != nil {
		t.Errorf("the same one, made anew: %v", err)
	}
	if now, err := readOwner(ctx, workload); err != nil || now != owner("first", "u3", 3) {
		t.Errorf("the record is %+v, %v", now, err)
	}
}
