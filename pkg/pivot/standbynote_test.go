package pivot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// newPlace returns an empty folder for the snapshots of platform, and a key for them.
func newPlace(t *testing.T) (snapshot.Place, secret.Keys) {
	t.Helper()
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := snapshot.NewFolder(t.TempDir(), "platform")
	if err != nil {
		t.Fatal(err)
	}
	return folder, secret.Keys{key}
}

// raced is a place in which somebody else writes a note after a standby has listed the place and before the standby writes its own note.
type raced struct {
	snapshot.Place
	other func()
}

func (p *raced) Save(ctx context.Context, id string, sealed []byte) error {
	if other := p.other; other != nil {
		p.other = nil
		other()
	}
	return p.Place.Save(ctx, id, sealed)
}

// Of two standbys, at most one takes over with a snapshot. A standby that was interrupted before the take-over ignores its own note.
func TestNoteTakeOver(t *testing.T) {
	ctx := t.Context()
	folder, keys := newPlace(t)
	standby := func(name, uid string) *session.Session {
		return &session.Session{Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{Name: name}, StandbyOf: "platform", Waiting: uid}
	}
	first, second := standby("spare", "u1"), standby("other", "u2")
	taken := time.Now().Add(time.Hour) // the clock of the machine that took the snapshot is ahead
	snap := &snapshot.Snapshot{ID: snapshot.NewID(taken), Taken: taken, ManagementCluster: "platform"}
	if err := snapshot.Put(ctx, folder, snap, keys); err != nil {
		t.Fatal(err)
	}
	race := &raced{Place: folder}
	race.other = func() {
		if err := noteTakeOver(ctx, first, folder, keys, keys, snap.ID); err != nil {
			t.Error(err)
		}
	}
	if err := noteTakeOver(ctx, second, race, keys, keys, snap.ID); err == nil || !strings.Contains(err.Error(), "to spare") {
		t.Errorf("the second of two at once: %v", err)
	}
	ids, err := folder.List(ctx)
	if err != nil || len(ids) != 2 {
		t.Fatalf("the place has %v, %v; want the snapshot and one note", ids, err)
	}
	if err := noteTakeOver(ctx, first, folder, keys, keys, snap.ID); err != nil {
		t.Errorf("the first again: %v", err)
	}
	if err := handedOverSince(ctx, first, folder, snap, keys); err != nil {
		t.Errorf("the snapshot to the first, which goes on with it: %v", err)
	}
	if newest, err := newestButOwnNotes(ctx, first, folder, keys); err != nil || newest.ID != snap.ID {
		t.Errorf("the newest snapshot to the first: %+v, %v", newest, err)
	}
	for name, s := range map[string]*session.Session{"another standby": second, "the first, once it has taken over": standby("spare", "")} {
		if err := handedOverSince(ctx, s, folder, snap, keys); err == nil || !strings.Contains(err.Error(), "to spare") {
			t.Errorf("the snapshot to %s: %v", name, err)
		}
	}
	if after, err := folder.List(ctx); err != nil || len(after) != 2 {
		t.Errorf("the place has %v, %v", after, err)
	}
	if err := noteTakeOver(ctx, standby("third", "u3"), folder, keys, keys, ""); err == nil {
		t.Error("a standby takes over from the living one, of which another one takes the work")
	}
	if err := removeNotesIn(ctx, folder, keys, first.Identity(), first.OwnNote, nil); err != nil {
		t.Fatal(err)
	}
	if after, err := folder.List(ctx); err != nil || len(after) != 1 || after[0] != snap.ID {
		t.Errorf("once the first has given up, the place has %v, %v", after, err)
	}
	if err := noteTakeOver(ctx, second, folder, keys, keys, snap.ID); err != nil {
		t.Errorf("the second, once the first has given up: %v", err)
	}
}

// A hand-over to a standby writes its note twice: somebody may take a snapshot between the first note and the journal, which forbids it.
// Nobody may restore that snapshot, and a note that is still the newest is kept.
func TestNoteTakeOverIsRenewed(t *testing.T) {
	ctx := t.Context()
	folder, keys := newPlace(t)
	s := &session.Session{Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}, StandbyOf: "platform", Waiting: "u1"}
	platform := &session.Session{Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{Name: "platform"}}
	for n, ahead := range []time.Duration{time.Hour, -time.Hour} { // of the clock of the machine that takes the snapshot
		if err := noteTakeOver(ctx, s, folder, keys, keys, ""); err != nil {
			t.Fatal(err)
		}
		taken := time.Now().Add(ahead)
		turn, err := snapshot.Begin(ctx, folder, taken)
		if err != nil {
			t.Fatal(err)
		}
		between := &snapshot.Snapshot{Taken: taken, ManagementCluster: "platform"}
		if err := turn.Put(ctx, between, keys); err != nil {
			t.Fatal(err)
		}
		if err := handedOverSince(ctx, platform, folder, between, keys); err != nil {
			t.Fatalf("snapshot %d is not later than the first note: %v", n, err)
		}
		for range 2 { // the second call finds the note of the first, and writes none
			if err := noteTakeOver(ctx, s, folder, keys, keys, ""); err != nil {
				t.Fatal(err)
			}
			if err := handedOverSince(ctx, platform, folder, between, keys); err == nil || !strings.Contains(err.Error(), "to spare") {
				t.Errorf("snapshot %d could be restored: %v", n, err)
			}
			ids, err := folder.List(ctx)
			if want := 3 + 2*n; err != nil || len(ids) != want {
				t.Errorf("the place has %v, %v; want %d", ids, err, want)
			}
		}
	}
}

// A pivot that is begun many times keeps one note, later than the snapshot of a machine whose clock is ahead, and pushes no snapshot out:
// if the pivot is undone because the source is gone, they are all that is left of it.
func TestNoteHandedOver(t *testing.T) {
	ctx := t.Context()
	folder, keys := newPlace(t)
	s := &session.Session{Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{Name: "platform"}}
	snapshotOf := func(at time.Time) {
		snap := &snapshot.Snapshot{ID: snapshot.NewID(at), Taken: at, ManagementCluster: "platform"}
		if err := snapshot.Put(ctx, folder, snap, keys); err != nil {
			t.Fatal(err)
		}
	}
	for n := range snapshot.Keep {
		snapshotOf(time.Now().Add(time.Duration(n-snapshot.Keep+2) * time.Hour)) // the last one is of an hour from now
	}
	before, err := folder.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Each run notes it twice: before it begins, and before the commit.
	for n := range 2 * (snapshot.Keep + 1) {
		if err := noteHandedOver(ctx, folder, note(s, "next", ""), keys, n%2 == 1); err != nil {
			t.Fatal(err)
		}
		ids, err := folder.List(ctx)
		if err != nil || len(ids) != len(before)+1 || !slices.Equal(ids[:len(before)], before) {
			t.Fatalf("after note %d, the place has %v, %v; want one note after %v", n, ids, err, before)
		}
		snap, err := snapshot.Find(ctx, folder, before[len(before)-1], keys)
		if err != nil {
			t.Fatal(err)
		}
		if err := handedOverSince(ctx, s, folder, snap, keys); err == nil || !strings.Contains(err.Error(), "to next") {
			t.Errorf("after note %d, the snapshot could be restored: %v", n, err)
		}
	}
	snapshotOf(time.Now().Add(2 * time.Hour)) // taken after the first note, before the journal forbids it
	if err := noteHandedOver(ctx, folder, note(s, "next", ""), keys, true); err != nil {
		t.Fatal(err)
	}
	if newest, err := snapshot.Find(ctx, folder, "", keys); err != nil || newest.HandedOver != "next" {
		t.Errorf("the newest is %+v, %v; want the note", newest, err)
	}
}

// Two fleets have a management cluster of one name, one place, and the same keys. Each writes and removes notes of its own, whatever the
// other has put behind them.
func TestNotesOfTwoFleetsInOnePlace(t *testing.T) {
	ctx := t.Context()
	folder, keys := newPlace(t)
	noteOf := func(fleet string) *snapshot.Snapshot {
		return &snapshot.Snapshot{Taken: time.Now(), Fleet: fleet, ManagementCluster: "platform", HandedOver: "next"}
	}
	notes := func() map[string]int {
		t.Helper()
		ids, err := folder.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, id := range ids {
			snap, err := snapshot.Find(ctx, folder, id, keys)
			if err != nil {
				t.Fatal(err)
			}
			if snap.HandedOver != "" {
				counts[snap.Fleet]++
			}
		}
		return counts
	}
	for _, anew := range []bool{false, true, false, true} {
		for _, fleet := range []string{"theirs", "mine"} {
			if err := noteHandedOver(ctx, folder, noteOf(fleet), keys, anew); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := notes(); got["mine"] != 1 || got["theirs"] != 1 {
		t.Fatalf("the fleets have %v notes, want one each", got)
	}
	turn, err := snapshot.Begin(ctx, folder, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.Put(ctx, &snapshot.Snapshot{Taken: time.Now(), Fleet: "theirs", ManagementCluster: "platform"}, keys); err != nil {
		t.Fatal(err)
	}
	toNext := func(note *snapshot.Snapshot) bool { return note.HandedOver == "next" }
	if err := removeNotesIn(ctx, folder, keys, "mine", toNext, nil); err != nil {
		t.Fatal(err)
	}
	if got := notes(); got["mine"] != 0 || got["theirs"] != 1 {
		t.Errorf("once mine are removed, the fleets have %v notes", got)
	}
}

// A snapshot that no key decrypts, such as another fleet's, keeps no abort from removing its own notes. With none of its own keys it fails.
func TestRemovesNotesBesideWhatNoKeyDecrypts(t *testing.T) {
	ctx := t.Context()
	folder, keys := newPlace(t)
	_, others := newPlace(t)
	start := time.Now().UTC().Truncate(time.Second)
	put := func(after time.Duration, to string, keys secret.Keys) string {
		t.Helper()
		taken := start.Add(after)
		snap := &snapshot.Snapshot{ID: snapshot.NewID(taken), Taken: taken, Fleet: "mine", ManagementCluster: "platform", HandedOver: to}
		if err := snapshot.Put(ctx, folder, snap, keys); err != nil {
			t.Fatal(err)
		}
		return snap.ID
	}
	kept := []string{put(0, "", keys)}
	put(time.Minute, "next", keys)
	kept = append(kept, put(2*time.Minute, "next", others))
	put(3*time.Minute, "next", keys)
	var warnings []string
	all := func(*snapshot.Snapshot) bool { return true }
	if err := removeNotesIn(ctx, folder, keys, "mine", all, func(text string) { warnings = append(warnings, text) }); err != nil {
		t.Error(err)
	}
	if ids, err := folder.List(ctx); err != nil || !slices.Equal(ids, kept) {
		t.Errorf("the place has %v, %v; want %v", ids, err, kept)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], kept[1]) {
		t.Errorf("the warnings: %q", warnings)
	}
	_, stranger := newPlace(t)
	if err := removeNotesIn(ctx, folder, stranger, "mine", all, nil); !snapshot.IsUnreadable(err) {
		t.Errorf("without a key of this fleet, whose notes may stay: %v", err)
	}
}
