//go:build integration

package pivot

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// If the newest snapshot is damaged, the standby stores that it could not take over. The last snapshot that it opened stays the one that it
// knows: otherwise the activation would miss the damaged one after somebody has moved it away.
func TestStandbyStoresThatASnapshotCannotBeOpened(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	living, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	s := &session.Session{
		Deps: e.Deps, Opts: session.Options{Dir: e.Dir}, Fleet: living.Fleet, Self: living.Self, Mgmt: &v1alpha1.ManagementCluster{Name: "spare"},
		StandbyOf: living.Mgmt.Name,
	}
	place, err := snapshot.NewFolder(filepath.Join(t.TempDir(), "snapshots"), s.StandbyOf)
	if err != nil {
		t.Fatal(err)
	}
	if err := place.Save(ctx, "20260102T000000Z-abcdef", []byte("This is no snapshot.\n")); err != nil {
		t.Fatal(err)
	}
	worked := &handover.Seen{
		Snapshot: "20260101T000000Z-abcdef", Taken: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Works: true, Problems: []string{},
		Clusters: []string{"demo/demo"}, Objects: 27,
	}
	e.WriteJournal(ctx, t, handover.Journal{
		Role: handover.RoleStandby, Phase: handover.PhaseFenced, Standby: &handover.Standby{Of: s.StandbyOf, Seen: worked},
	})
	d := &drill{session: s, result: &DrillResult{}}
	if opened, err := d.open(ctx, place); err != nil || opened {
		t.Fatalf("opened: %t, %v", opened, err)
	}
	if err := d.seeUnopened(ctx, e.Client); err != nil {
		t.Fatal(err)
	}
	journal, err := handover.ReadJournal(ctx, e.Client)
	if err != nil || !journal.IsStandby() || journal.Standby.Seen == nil {
		t.Fatalf("the journal is %+v, %v", journal, err)
	}
	seen := journal.Standby.Seen
	if seen.Works || len(seen.Problems) != 1 || !strings.Contains(seen.Problems[0], "open the snapshot 20260102T000000Z-abcdef") {
		t.Errorf("it works: %t, %q", seen.Works, seen.Problems)
	}
	if seen.Snapshot != worked.Snapshot || !seen.Taken.Equal(worked.Taken) || !seen.At.After(worked.At) {
		t.Errorf("the standby knows %s, taken %s, tried %s", seen.Snapshot, seen.Taken, seen.At)
	}
}
