package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

// keepAt takes a turn on a machine whose clock shows that time.
func keepAt(t *testing.T, place Place, at time.Time, keys secret.Keys) *Snapshot {
	t.Helper()
	turn, err := Begin(t.Context(), place, at)
	if err != nil {
		t.Fatal(err)
	}
	s := taken(at)
	if err := turn.Put(t.Context(), s, keys); err != nil {
		t.Fatal(err)
	}
	return s
}

func newPlace(t *testing.T) *Folder {
	t.Helper()
	place, err := NewFolder(t.TempDir(), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// Machines whose clocks are far apart write to one place. The newest snapshot is the one that was taken last, and the oldest goes first.
func TestClocksApart(t *testing.T) {
	keys, place := newKeys(t), newPlace(t)
	now := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	clocks := []time.Duration{0, time.Hour, -time.Hour, 100 * 365 * 24 * time.Hour, 0, 0, -30 * time.Minute}
	var all []string
	for n := range 3 * Keep {
		s := keepAt(t, place, now.Add(clocks[n%len(clocks)]), keys)
		all = append(all, s.ID)
		if newest, err := Find(t.Context(), place, "", keys); err != nil || newest.ID != s.ID {
			t.Fatalf("snapshot %d: the newest is %v, %v; want %s", n, newest, err, s.ID)
		}
		ids, err := place.List(t.Context())
		if want := all[max(len(all)-Keep, 0):]; err != nil || !slices.Equal(ids, want) {
			t.Fatalf("snapshot %d: the place has\n%v, %v; want\n%v", n, ids, err, want)
		}
	}
}

// With clocks that agree, an ID begins with the time.
func TestIDOfATurn(t *testing.T) {
	keys, place := newKeys(t), newPlace(t)
	at := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{at, at.Add(time.Second), at.Add(time.Hour)} {
		if s := keepAt(t, place, at, keys); !TimeOf(s.ID).Equal(at) {
			t.Errorf("%s at %s", s.ID, at)
		}
	}
}

// Nothing can be newer than a name that no clock makes. The next snapshot is refused, where nobody would find it.
func TestNoLaterID(t *testing.T) {
	for _, last := range []string{"99991231T235959Z-zzzzzz", "99999999T999999Z-aaaaaa", "20261399T000000Z-aaaaaa"} {
		place := newPlace(t)
		if err := place.Save(t.Context(), last, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := Begin(t.Context(), place, time.Now()); err == nil || !strings.Contains(err.Error(), "newer than "+last) {
			t.Errorf("%s: %v", last, err)
		}
	}
}

func noted(at time.Time) *Snapshot {
	s := taken(at)
	s.HandedOver, s.Objects = "next", nil
	return s
}

// A snapshot that was being read while the work was handed over is not kept: it would be newer than the note.
func TestHandedOverDuringATurn(t *testing.T) {
	keys, place, ctx := newKeys(t), newPlace(t), t.Context()
	now := time.Now()
	before := keepAt(t, place, now, keys)
	slow, err := Begin(ctx, place, now.Add(time.Hour)) // its clock is ahead
	if err != nil {
		t.Fatal(err)
	}
	other := keepAt(t, place, now, keys)
	turn, err := Begin(ctx, place, now)
	if err != nil {
		t.Fatal(err)
	}
	note := noted(now)
	if err := turn.Put(ctx, note, keys); err != nil {
		t.Fatal(err)
	}
	if err := slow.Put(ctx, taken(now), keys); err == nil || !strings.Contains(err.Error(), "handed its work over to next") {
		t.Errorf("a snapshot of before: %v", err)
	}
	if ids, err := place.List(ctx); err != nil || !slices.Equal(ids, []string{before.ID, other.ID, note.ID}) {
		t.Errorf("the place has %v, %v", ids, err)
	}
	if after := keepAt(t, place, now.Add(-time.Hour), keys); after.ID <= note.ID {
		t.Errorf("after an abort, the snapshot %s is older than the note %s", after.ID, note.ID)
	}
}

// crowded is a place to which others write while one turn saves.
type crowded struct {
	Place
	others []func()
}

func (c *crowded) Save(ctx context.Context, id string, sealed []byte) error {
	if len(c.others) > 0 {
		c.others[0]()
		c.others = c.others[1:]
	}
	return c.Place.Save(ctx, id, sealed)
}

// A note is later than what others keep at the same moment with clocks that are ahead, and removes no snapshot.
func TestNoteIsLast(t *testing.T) {
	keys, folder, ctx := newKeys(t), newPlace(t), t.Context()
	now := time.Now()
	for range Keep {
		keepAt(t, folder, now, keys)
	}
	place := &crowded{Place: folder}
	for n := range 2 {
		place.others = append(place.others, func() {
			at := now.Add(time.Duration(n+1) * time.Hour)
			s := taken(at)
			sealed, err := s.Seal(keys)
			if err := errors.Join(err, folder.Save(ctx, s.ID, sealed)); err != nil {
				t.Error(err)
			}
		})
	}
	turn, err := Begin(ctx, place, now)
	if err != nil {
		t.Fatal(err)
	}
	note := noted(now)
	if err := turn.Put(ctx, note, keys); err != nil {
		t.Fatal(err)
	}
	ids, err := folder.List(ctx)
	if err != nil || len(ids) != Keep+3 || ids[Keep+2] != note.ID {
		t.Errorf("the place has %v, %v; want the note %s last", ids, err, note.ID)
	}
	if newest, err := Find(ctx, folder, "", keys); err != nil || newest.HandedOver != "next" {
		t.Errorf("the newest: %v, %v", newest, err)
	}
}

// unlisted is a place that cannot be listed once a snapshot is in it.
type unlisted struct {
	Place
	saved bool
}

func (u *unlisted) Save(ctx context.Context, id string, sealed []byte) error {
	u.saved = true
	return u.Place.Save(ctx, id, sealed)
}

func (u *unlisted) List(ctx context.Context) ([]string, error) {
	if u.saved {
		return nil, fmt.Errorf("list: %w", fs.ErrPermission)
	}
	return u.Place.List(ctx)
}

// A command does not say that it kept the newest snapshot where it cannot know.
func TestCannotTellWhetherItIsTheNewest(t *testing.T) {
	turn, err := Begin(t.Context(), &unlisted{Place: newPlace(t)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	err = turn.Put(t.Context(), taken(time.Now()), newKeys(t))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "cannot be told") {
		t.Errorf("got %v", err)
	}
}

// Two fleets have a management cluster of one name, and one place. Neither removes the other's snapshots, and neither is told that it has
// none.
func TestTwoFleetsInOnePlace(t *testing.T) {
	first, second, place := newKeys(t), newKeys(t), newPlace(t)
	now := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	mine := keepAt(t, place, now, first)
	theirs := func(at time.Time, keys secret.Keys) {
		t.Helper()
		turn, err := Begin(t.Context(), place, at)
		if err != nil {
			t.Fatal(err)
		}
		s := taken(at)
		s.Fleet, s.FleetName = "7c9e6679-7425-40de-944b-e07fc1f90ae7", "other"
		if err := turn.RefuseOthers(t.Context(), s.Fleet, keys); (err == nil) != (keys[0] != first[0]) {
			t.Errorf("it can read whose the newest is, and says %v", err)
		}
		if err := turn.Put(t.Context(), s, keys); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 2 * Keep {
		theirs(now.Add(time.Duration(n+1)*time.Minute), second)
	}
	if s, err := Find(t.Context(), place, mine.ID, first); err != nil || s.ID != mine.ID {
		t.Errorf("the other fleet has removed it: %v", err)
	}
	if ids, err := place.List(t.Context()); err != nil || len(ids) != Keep+1 {
		t.Errorf("the place has %d snapshots, %v", len(ids), err)
	}
	_, err := Find(t.Context(), place, "", first)
	if errors.Is(err, fs.ErrNotExist) || !IsUnreadable(err) || !strings.Contains(diag.Hint(err), "a place of their own") {
		t.Errorf("%v (%s)", err, diag.Hint(err))
	}

	place = newPlace(t) // a copy of the fleet repo, with its keys, is a fleet of its own
	keepAt(t, place, now, first)
	theirs(now.Add(time.Hour), first)
	turn, err := Begin(t.Context(), place, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.RefuseOthers(t.Context(), mine.Fleet, first); err == nil || !strings.Contains(err.Error(), "of another fleet, other") {
		t.Errorf("%v", err)
	}
}

// Snapshots of another fleet in the same place, later ones too, take no room from those of this fleet, whoever can read them.
func TestOthersTakeNoRoom(t *testing.T) {
	mine := newKeys(t)
	at := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	for story, others := range map[string]secret.Keys{"keys of their own": newKeys(t), "the same keys": mine} {
		place := newPlace(t)
		var own []string
		for range Keep {
			own = append(own, keepAt(t, place, at, mine).ID)
		}
		for range Keep {
			turn, err := Begin(t.Context(), place, at)
			if err != nil {
				t.Fatal(err)
			}
			s := taken(at)
			s.Fleet = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
			if err := turn.Put(t.Context(), s, others); err != nil {
				t.Fatal(err)
			}
		}
		damaged := NewID(at.Add(-time.Hour)) // it goes first
		if err := place.Save(t.Context(), damaged, []byte("x")); err != nil {
			t.Fatal(err)
		}
		own = append(own, keepAt(t, place, at, mine).ID)
		ids, err := place.List(t.Context())
		if err != nil || len(ids) != 2*Keep || slices.Contains(ids, damaged) || slices.Contains(ids, own[0]) || !slices.Contains(ids, own[1]) {
			t.Errorf("%s: the place has %v, %v; want %v and the others'", story, ids, err, own[1:])
		}
	}
}

// After a rotation, a machine with the earlier key still removes the snapshots that are encrypted for that.
func TestRemovesSnapshotsOfEarlierKeys(t *testing.T) {
	earlier, now, place := newKeys(t), newKeys(t), newPlace(t)
	at := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	for n := range Keep {
		keepAt(t, place, at.Add(time.Duration(n)*time.Minute), earlier)
	}
	for n := range Keep {
		turn, err := Begin(t.Context(), place, at.Add(time.Duration(n)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		turn.Known = earlier
		if err := turn.Put(t.Context(), taken(at), now); err != nil {
			t.Fatal(err)
		}
		if ids, err := place.List(t.Context()); err != nil || len(ids) != Keep {
			t.Fatalf("the place has %d snapshots, %v", len(ids), err)
		}
	}
}
