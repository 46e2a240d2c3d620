package pivot

import (
	"context"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// Before a standby takes over, it writes a note about this to the place of the snapshots, for other standbys. Until the standby has taken
// over, its own journal decides how it continues. It then ignores its own notes, which come from runs that were killed.

// newestButOwnNotes reads the newest snapshot or note, and skips notes of this standby. It returns the errors of snapshot.Find.
func newestButOwnNotes(ctx context.Context, s *session.Session, place snapshot.Place, keys secret.Keys) (*snapshot.Snapshot, error) {
	snap, err := snapshot.Find(ctx, place, "", keys)
	if err != nil || !s.OwnNote(snap) {
		return snap, err
	}
	ids, err := place.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		if id >= snap.ID {
			continue
		}
		if older, err := snapshot.Find(ctx, place, id, keys); err != nil || !s.OwnNote(older) {
			return older, err
		}
	}
	return nil, diag.Errorf("a standby takes over with a snapshot: find out where the snapshots are",
		"there is no snapshot of %s in %s", s.DeclaredAs(), place)
}

// notesSince returns two notes that are newer than the snapshot since: the standby's own newest note, and the newest note of somebody
// else. An empty since stands for the newest snapshot.
func notesSince(
	ctx context.Context,
	s *session.Session,
	place snapshot.Place,
	keys secret.Keys,
	since string,
) (own, other *snapshot.Snapshot, err error) {
	ids, err := place.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Backward(ids) {
		if id <= since {
			break
		}
		snap, err := snapshot.Find(ctx, place, id, keys)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case snap.Fleet != s.Identity(): // it says nothing about this management cluster
		case snap.HandedOver == "" && since == "":
			return own, other, nil
		case snap.HandedOver == "":
		case s.OwnNote(snap) && own == nil:
			own = snap
		case !s.OwnNote(snap) && other == nil:
			other = snap
		}
	}
	return own, other, nil
}

// noteTakeOver writes a note to the place of the snapshots that the standby takes over, and lists the place again afterwards. If two
// standbys write notes at the same time, at least one of them sees the other's note and stops.
func noteTakeOver(ctx context.Context, s *session.Session, place snapshot.Place, keys, seal secret.Keys, since string) error {
	own, other, err := notesSince(ctx, s, place, keys, since)
	if err != nil {
		return err
	}
	if other != nil {
		return refuseHandedOverSince(s.DeclaredAs(), other)
	}
	if own != nil {
		return nil
	}
	note := note(s, s.Mgmt.Name, s.Waiting)
	if err := putNote(ctx, place, note, seal); err != nil {
		return err
	}
	if _, other, err = notesSince(ctx, s, place, keys, since); err != nil || other == nil {
		return err
	}
	if err := session.Late(ctx, func(ctx context.Context) error { return place.Remove(ctx, note.ID) }); err != nil {
		return diag.Wrap("remove the note "+note.ID+" from "+place.String(), err,
			"`fleetctl standby activate "+s.Mgmt.Name+" --abort` removes it")
	}
	return refuseHandedOverSince(s.DeclaredAs(), other)
}

// markHistory calls noteTakeOver for the place of the snapshots, unless the standby has taken over already.
func (a *activation) markHistory(ctx context.Context, commit *following.Pushed) error {
	s := a.session
	if s.SnapshotsTo() == "" || s.Waiting == "" {
		return nil
	}
	place, err := s.Place()
	if err != nil {
		return err
	}
	seal, err := SealingKeys(commit)
	if err != nil {
		return err
	}
	keys, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	if err != nil {
		return err
	}
	since := ""
	if a.Snap != nil {
		since = a.Snap.ID
	}
	return noteTakeOver(ctx, s, place, fleetsecrets.Unique(slices.Concat(keys, seal)), seal, since)
}

// forgetNotes removes the standby's notes from the place of the snapshots, so that others may take over. The standby must not have taken
// over.
func forgetNotes(ctx context.Context, s *session.Session) error {
	err := removeNotes(ctx, s)
	return diag.Wrap("remove the note that "+s.Mgmt.Name+" takes over from the place of the snapshots", err,
		"run the same command again: "+s.Mgmt.Name+" has not taken over, but the note keeps all others from taking over with the snapshots")
}

func removeNotes(ctx context.Context, s *session.Session) error {
	if s.SnapshotsTo() == "" || s.Waiting == "" {
		return nil
	}
	place, err := s.Place()
	if err != nil {
		return err
	}
	keys, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	if err != nil {
		return err
	}
	return removeNotesIn(ctx, place, keys, s.Identity(), s.OwnNote, s.Deps.Report.Warn)
}

// removeNotesIn removes the fleet's notes that which selects and that are newer than its newest snapshot. Older notes have no effect. What
// another fleet has in the place stays, and says nothing about this one. What cannot be opened is another's, too, if the keys open anything
// of this fleet: warn, if not nil, is told about it. Otherwise a key is missing, and the error says so after everything else was looked at.
func removeNotesIn(
	ctx context.Context,
	place snapshot.Place,
	keys secret.Keys,
	fleet string,
	which func(note *snapshot.Snapshot) bool,
	warn func(string),
) error {
	ids, err := place.List(ctx)
	if err != nil {
		return err
	}
	var closed []error
	opened := false
	for _, id := range slices.Backward(ids) {
		snap, err := snapshot.Find(ctx, place, id, keys)
		if snapshot.IsUnreadable(err) {
			closed = append(closed, err)
			continue
		}
		if err != nil {
			return err
		}
		if snap.Fleet != fleet {
			continue
		}
		opened = true
		if snap.HandedOver == "" {
			break
		}
		if which(snap) {
			if err := place.Remove(ctx, id); err != nil {
				return err
			}
		}
	}
	if len(closed) > 0 && !opened {
		return closed[0]
	}
	if warn != nil {
		for _, err := range closed {
			warn("what cannot be opened beside the snapshots stays, and is taken for another fleet's: " + diag.InLine(err))
		}
	}
	return nil
}

// markHandedOver writes a note to the place of the snapshots that the management cluster to has the work, or will have it, so that nobody
// restores the work from there. It runs before the hand-over begins, and again (anew) before the commit, when the journal keeps everybody
// from taking another snapshot: a run that is killed right after the commit could not write the note. An abort takes a new snapshot, which
// replaces the note.
func markHandedOver(ctx context.Context, p *following.Pushed, to string, anew bool) error {
	s := p.Session
	if s.SnapshotsTo() == "" {
		return nil
	}
	place, err := s.Place()
	if err != nil {
		return err
	}
	keys, err := SealingKeys(p)
	if err != nil {
		return err
	}
	return noteHandedOver(ctx, place, note(s, to, ""), keys, anew)
}

// noteHandedOver keeps the note as the newest in the place, and removes the earlier notes that say the same. If the newest one says the
// same already, it is kept instead, unless anew.
func noteHandedOver(ctx context.Context, place snapshot.Place, note *snapshot.Snapshot, keys secret.Keys, anew bool) error {
	same := func(s *snapshot.Snapshot) bool {
		return s.Fleet == note.Fleet && s.ID != note.ID && s.HandedOver == note.HandedOver && s.HandedOverUID == note.HandedOverUID
	}
	if newest, err := snapshot.Find(ctx, place, "", keys); err == nil && same(newest) && !anew {
		return nil
	}
	if err := putNote(ctx, place, note, keys); err != nil {
		return err
	}
	_ = removeNotesIn(ctx, place, keys, note.Fleet, same, nil) // one note too many says nothing wrong
	return nil
}

// putNote keeps a note in the place of the snapshots, as the newest there.
func putNote(ctx context.Context, place snapshot.Place, note *snapshot.Snapshot, keys secret.Keys) error {
	turn, err := snapshot.Begin(ctx, place, note.Taken)
	if err != nil {
		return err
	}
	return turn.Put(ctx, note, keys)
}

// note returns the note that the management cluster to has the work, or will have it. uid is the UID of a standby that takes over, or "".
func note(s *session.Session, to, uid string) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Taken: time.Now().UTC().Truncate(time.Second), By: ownership.Somebody(), Fleet: s.Identity(), FleetName: s.Fleet.Metadata.Name,
		ManagementCluster: s.DeclaredAs(),
		Providers:         []string{}, Clusters: []string{}, Available: []string{}, HandedOver: to, HandedOverUID: uid,
	}
}
