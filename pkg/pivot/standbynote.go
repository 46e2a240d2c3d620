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
	ids, err := place.List(ctx)
	if err != nil {
		return err
	}
	at := time.Now()
	if len(ids) > 0 { // the note must be newer than every snapshot, also if the clock of another machine is ahead
		if next := snapshot.TimeOf(ids[len(ids)-1]).Add(time.Second); at.Before(next) {
			at = next
		}
	}
	note := note(s, s.Mgmt.Name, s.Waiting, at)
	if err := snapshot.Put(ctx, place, note, seal); err != nil {
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
	return removeNotesIn(ctx, place, keys, s.OwnNote)
}

// removeNotesIn removes the notes that which selects and that are newer than the newest snapshot. Older notes have no effect.
func removeNotesIn(ctx context.Context, place snapshot.Place, keys secret.Keys, which func(note *snapshot.Snapshot) bool) error {
	ids, err := place.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		snap, err := snapshot.Find(ctx, place, id, keys)
		if err != nil {
			return err
		}
		if snap.HandedOver == "" {
			return nil
		}
		if which(snap) {
			if err := place.Remove(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// markHandedOver writes a note to the place of the snapshots that the management cluster to has the work, or will have it, so that nobody
// restores the work from there. It runs before the commit, because a run that is killed right after the commit could not write the note. An
// abort takes a new snapshot, which replaces the note.
func markHandedOver(ctx context.Context, p *following.Pushed, to string) error {
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
	return snapshot.Put(ctx, place, note(s, to, "", time.Now()), keys)
}

// note returns the note that the management cluster to has the work, or will have it. uid is the UID of a standby that takes over, or "".
func note(s *session.Session, to, uid string, at time.Time) *snapshot.Snapshot {
	at = at.UTC().Truncate(time.Second)
	return &snapshot.Snapshot{
		ID: snapshot.NewID(at), Taken: at, By: ownership.Somebody(), Fleet: s.Identity(), FleetName: s.Fleet.Metadata.Name,
		ManagementCluster: s.DeclaredAs(),
		Providers:         []string{}, Clusters: []string{}, Available: []string{}, HandedOver: to, HandedOverUID: uid,
	}
}
