//go:build integration

package pivot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// An activation that is refused before its first journal leaves no note that the standby takes over. If either side has a journal of it,
// the note stays.
func TestRefusedActivationLeavesNoNote(t *testing.T) {
	ctx, e, s := takenFleet(t)
	commit := noting(t, e, s)
	keys := commit.Access.Keys
	s.Opts.AgeKeyFile = filepath.Join(t.TempDir(), "agekey")
	if err := os.WriteFile(s.Opts.AgeKeyFile, keys.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	source, _ := kubetest.Start(t)
	kubetest.ClusterAPI(t, source, "clusters", "machines")
	for _, client := range []*kube.Client{e.Client, source} { // so the standby refuses it
		if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
			t.Fatal(err)
		}
		if err := client.Create(ctx, standingtest.NewWorkload("shop", "shop")); err != nil {
			t.Fatal(err)
		}
	}
	s.StandbyOf, s.Waiting = "lost", "u1"
	const rests = `"role":"standby","phase":"released","standby":{"of":"lost"}`
	for name, c := range map[string]struct{ here, there, noted string }{
		"it is at rest":                    {here: rests},
		"it has begun":                     {here: `"role":"target","phase":"planned","activates":true`, noted: s.Mgmt.Name},
		"the other one hands over to it":   {rests, `"role":"source","phase":"planned","activates":true,"target":{"uid":"u1"}`, s.Mgmt.Name},
		"the other one hands over to some": {rests, `"role":"source","phase":"planned","activates":true,"target":{"uid":"u2"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.Fleet.Spec.Snapshots.To = t.TempDir()
			place, err := s.Place()
			if err != nil {
				t.Fatal(err)
			}
			taken := time.Now().Add(-time.Hour)
			last := &snapshot.Snapshot{ID: snapshot.NewID(taken), Taken: taken, Fleet: s.Identity(), ManagementCluster: s.DeclaredAs()}
			if err := snapshot.Put(ctx, place, last, keys); err != nil {
				t.Fatal(err)
			}
			forgetJournal(t, source)
			keepJournal(ctx, t, e.Client, `{"formatVersion":"1","id":"a",`+c.here+`}`)
			a := &activation{Restoration: NewRestoration(converge.NewRun(s)), client: e.Client, source: source}
			a.Snap, a.opts.HandOver = last, true
			if c.there == "" && c.noted == "" {
				if a.journal, err = handover.ReadJournal(ctx, e.Client); err != nil {
					t.Fatal(err)
				}
				_, err := a.takeOver(ctx, e.Client, commit, &resolve.Manifests{}, func(string) {})
				if err == nil || !strings.Contains(err.Error(), "already exists") {
					t.Fatalf("the standby takes a Cluster that it has: %v", err)
				}
			} else {
				if err := a.markHistory(ctx, commit); err != nil {
					t.Fatal(err)
				}
				if c.there != "" {
					keepJournal(ctx, t, source, `{"formatVersion":"1","id":"a",`+c.there+`}`)
				}
				a.forgetUnlessBegun(ctx, e.Client)
			}
			if newest, err := snapshot.Find(ctx, place, "", keys); err != nil || newest.HandedOver != c.noted {
				t.Errorf("the newest in the place of the snapshots is handed over to %q, %v", newest.HandedOver, err)
			}
		})
	}
}
