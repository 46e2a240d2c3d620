//go:build integration

package pivot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// A snapshot that cannot be opened replaces the good result of an earlier try in the standby's journal, which still names the tried
// snapshot.
func TestRefreshNotesADamagedSnapshot(t *testing.T) {
	ctx, e, s := takenFleet(t)
	s.StandbyOf = "lost"
	place, keys := newPlace(t)
	s.Opts.AgeKeyFile = filepath.Join(t.TempDir(), "agekey")
	if err := os.WriteFile(s.Opts.AgeKeyFile, keys.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	damaged := snapshot.NewID(taken.Add(time.Minute))
	if err := place.Save(ctx, damaged, []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	before := handover.Seen{
		Snapshot: snapshot.NewID(taken), Taken: taken, At: taken, Works: true, Problems: []string{}, Clusters: []string{"shop/shop"},
	}
	for name, seen := range map[string]*handover.Seen{"after a good try": &before, "the first time": nil} {
		e.WriteJournal(ctx, t, handover.Journal{Role: handover.RoleStandby, Standby: &handover.Standby{Of: "lost", Seen: seen}})
		d := &drill{session: s, result: &DrillResult{}}
		if err := d.refresh(ctx, e.Client, place); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		j, err := handover.ReadJournal(ctx, e.Client)
		if err != nil || !j.IsStandby() || j.Standby.Seen == nil {
			t.Fatalf("%s: %+v, %v", name, j, err)
		}
		now := j.Standby.Seen
		if now.Works || !now.At.After(taken) || !slices.ContainsFunc(now.Problems, func(p string) bool { return strings.Contains(p, damaged) }) {
			t.Errorf("%s: the journal says %+v", name, now)
		}
		if seen != nil && (now.Snapshot != before.Snapshot || !now.Taken.Equal(taken)) || seen == nil && now.Snapshot != "" {
			t.Errorf("%s: the journal names %s of %s", name, now.Snapshot, now.Taken)
		}
	}
}
