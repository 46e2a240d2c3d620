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

// Before a standby takes over, it notes this in the place of the snapshots. Until it has taken over, its own journal counts, and its own
// note means nothing to it: a run that was killed left the note there.

// newestButOwnNotes reads the newest snapshot, and passes over notes of this standby. It has the errors of snapshot.Find.
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
	return nil, diag.Errorf("there is nothing to take over with", "there is no snapshot of %s in %s", s.DeclaredAs(), place)
}

// notesSince returns the newest note of the standby itself and the newest note of somebody else after the snapshot since. An empty since
// means the newest snapshot.
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

// noteTakeOver notes in the place of the snapshots that the standby takes over, and lists the place again afterwards. If two standbys write
// such notes at the same time, at least one of them sees the other's note and stops.
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
	if len(ids) > 0 { // a note counts for what is older than it, whatever the clocks of two machines say
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

// forgetNotes removes the standby's notes from the place of the snapshots: the standby has not taken over, and others may.
func forgetNotes(ctx context.Context, s *session.Session) error {
	err := removeNotes(ctx, s)
	return diag.Wrap("remove from the place of the snapshots that "+s.Mgmt.Name+" takes over", err,
		"it has not taken over. Run the same command again: until then nobody else can take over with the snapshots")
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

// removeNotesIn removes those of the notes that are newer than the newest snapshot. Older notes no longer count.
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

// markHandedOver notes in the place of the snapshots that another management cluster has the work, or will have it, so that nobody restores
// it from there. The note is written before the commit, because a run that dies right after the commit could not write it. An abort takes a
// new snapshot, which counts from then on.
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

// note is the text of a note that another management cluster has the work, or will have it. uid is the UID of a standby, or else "".
func note(s *session.Session, to, uid string, at time.Time) *snapshot.Snapshot {
	at = at.UTC().Truncate(time.Second)
	return &snapshot.Snapshot{
		ID: snapshot.NewID(at), Taken: at, By: ownership.Somebody(), Fleet: s.Identity(), FleetName: s.Fleet.Metadata.Name,
		ManagementCluster: s.DeclaredAs(),
		Providers:         []string{}, Clusters: []string{}, Available: []string{}, HandedOver: to, HandedOverUID: uid,
	}
}
