//go:build integration

package handover

import (
	"fmt"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A hand-over that is killed before or after it claims a Cluster has not committed. The same command goes on, and an abort, which may be
// killed as well, leaves the Cluster's own record as it was.
func TestClaimOfOwnerKilled(t *testing.T) {
	_, workload := kubetest.Start(t)
	ctx := t.Context()
	client, err := kube.New(workload, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cut := kubetest.NewCut(t, workload)
	before := newRecord(capi.Owner{Fleet: "f", ManagementCluster: "lost", UID: "u0", Epoch: 1})
	if err := client.Create(ctx, before); err != nil {
		t.Fatal(err)
	}
	seen := fingerprint(before)
	first := racer(t, "one", cut.Kubeconfig(), seen, 1)
	side, copied := first.target.Side, *first.target.journal
	// from is the same command on another machine, which knows only what the journal says.
	from := func() *run {
		t.Helper()
		r := newRun(Options{})
		if r.target, err = lookAtSide(ctx, side); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, claimed := range []bool{false, true} {
		for _, tookBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("claimed %t, taken back %t", claimed, tookBack), func(t *testing.T) {
				killed, _ := cut.Begin(ctx, t, 1, claimed)
				if err := from().commit(killed); err == nil {
					t.Error("a hand-over that was killed has committed")
				}
				if _, ended := cut.Writes(); !ended {
					t.Fatal("the hand-over claims nothing")
				}
				if phase := from().target.journal.Phase; phase.Committed() {
					t.Errorf("killed at the claim, the journal says %s", phase)
				}
				killed, _ = cut.Begin(ctx, t, 1, tookBack)
				from().takeBackClaims(killed)
				if _, ended := cut.Writes(); ended != claimed {
					t.Errorf("the abort takes a claim back: %t", ended)
				}
				cut.Begin(ctx, t, 0, false)
				from().takeBackClaims(ctx)
				if record, err := ownerRecord(ctx, client); err != nil || fingerprint(record) != seen {
					t.Errorf("after the abort: %+v, %v", record, err)
				}

				killed, _ = cut.Begin(ctx, t, 1, claimed)
				_ = from().commit(killed)
				cut.Begin(ctx, t, 0, false)
				r := from()
				if err := r.commit(ctx); err != nil {
					t.Fatal(err)
				}
				if owner, err := readOwner(ctx, workload); err != nil || owner != r.owner() {
					t.Errorf("the record is %+v, %v, and the owner %+v", owner, err, r.owner())
				}
				if err := takeBack(ctx, workload, r.target.party.UID, claim{owner: capi.Owner{Epoch: 1}}); err != nil {
					t.Error(err)
				}
				begun := *r.target.journal // for the next story
				begun.Phase, begun.Owner, begun.Epoch = copied.Phase, copied.Owner, copied.Epoch
				if err := r.target.put(ctx, &begun); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
