package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

// Turn is the place of one snapshot, or of one note, in the order of a place. The clocks of the machines that write to a place differ. So
// a turn is later than everything that the place had when the turn began, whatever the clock says.
type Turn struct {
	place  Place
	id     string
	before []string // the IDs that the place had when the turn began
	// Known are keys that decrypt earlier snapshots of the fleet, besides the ones that the new snapshot is encrypted for.
	Known secret.Keys
}

// Begin begins a turn. Call it before you read what the snapshot will hold: then a snapshot is never later than a note about a hand-over
// that happened while it was read.
func Begin(ctx context.Context, place Place, now time.Time) (*Turn, error) {
	ids, err := place.List(ctx)
	if err != nil {
		return nil, err
	}
	id, err := nextID(ids, now)
	return &Turn{place: place, id: id, before: ids}, diag.Wrap("find the name of the next snapshot in "+place.String(), err, diag.Hint(err))
}

// nextID is an ID that sorts behind all of ids, the oldest first: of now, or else of the second after the newest.
func nextID(ids []string, now time.Time) (string, error) {
	if len(ids) == 0 {
		return NewID(now), nil
	}
	newest := ids[len(ids)-1]
	if least := TimeOf(newest).Add(time.Second); now.Before(least) {
		now = least
	}
	id := NewID(now)
	if !ValidID(id) || id <= newest { // no clock has made the newest ID
		return "", diag.Errorf("find out who has made it, and remove it", "no snapshot can be newer than %s", newest)
	}
	return id, nil
}

// Put gives the snapshot the ID of the turn and keeps it, as the function Put does. A note becomes later than everything that others kept
// meanwhile, and no snapshot is removed for it: if the hand-over is undone, the snapshots are needed again. A snapshot is not kept if
// somebody kept a note during the turn: the work that it holds was handed over while it was read.
func (t *Turn) Put(ctx context.Context, s *Snapshot, keys secret.Keys) error {
	s.ID = t.id
	ids, err := put(ctx, t.place, s, keys)
	if err != nil {
		return err
	}
	if s.HandedOver != "" {
		return t.last(ctx, s, keys, ids)
	}
	if err := t.refuseNote(ctx, s, keys, ids); err != nil {
		return err
	}
	prune(ctx, t.place, s, slices.Concat(keys, t.Known), ids)
	return nil
}

// mostTurns is how many times a note is kept anew because others write to the place at the same time.
const mostTurns = 10

// last keeps the note once more, with a later ID, for as long as others have kept something later.
func (t *Turn) last(ctx context.Context, s *Snapshot, keys secret.Keys, ids []string) error {
	for turns := 0; len(ids) > 0 && ids[len(ids)-1] > s.ID; turns++ {
		if turns == mostTurns {
			return diag.Errorf("find out who writes there all the time, and run the same command again",
				"others keep snapshots in %s so fast that none can be the newest", t.place)
		}
		earlier := s.ID
		id, err := nextID(ids, time.Time{})
		if err != nil {
			return err
		}
		s.ID = id
		if ids, err = put(ctx, t.place, s, keys); err != nil {
			return err
		}
		if err := t.place.Remove(ctx, earlier); err != nil {
			return err
		}
	}
	return nil
}

// refuseNote takes the snapshot away again if the place has an earlier note that was not there when the turn began.
func (t *Turn) refuseNote(ctx context.Context, s *Snapshot, keys secret.Keys, ids []string) error {
	for _, id := range ids {
		if id >= s.ID || slices.Contains(t.before, id) {
			continue
		}
		other, err := find(ctx, t.place, id, ids, keys)
		if errors.Is(err, fs.ErrNotExist) || err == nil && other.HandedOver == "" {
			continue
		}
		if err == nil {
			err = diag.Errorf("ask "+other.HandedOver+": `fleetctl connect`", "%s has handed its work over to %s, or is about to: "+
				"the snapshot that was being taken meanwhile is not kept", s.ManagementCluster, other.HandedOver)
		}
		return errors.Join(err, t.place.Remove(context.WithoutCancel(ctx), s.ID))
	}
	return nil
}

// put seals a snapshot, saves it, and lists the place.
func put(ctx context.Context, place Place, s *Snapshot, keys secret.Keys) ([]string, error) {
	sealed, err := s.Seal(keys)
	if err != nil {
		return nil, err
	}
	if err := place.Save(ctx, s.ID, sealed); err != nil {
		return nil, err
	}
	ids, err := place.List(ctx)
	if err != nil {
		err = fmt.Errorf("the snapshot %s is kept, but whether it is the newest cannot be told: %w", s.ID, err)
	}
	return ids, err
}

// RefuseOthers returns an error if the newest snapshot that the place had when the turn began is another fleet's. The snapshots of two
// management clusters of one name would get mixed up: neither fleet could restore its own, once the other has kept a later one.
func (t *Turn) RefuseOthers(ctx context.Context, fleet string, keys secret.Keys) error {
	if len(t.before) == 0 {
		return nil
	}
	newest, err := find(ctx, t.place, t.before[len(t.before)-1], t.before, slices.Concat(keys, t.Known))
	if err != nil || newest.Fleet == fleet {
		return nil //nolint:nilerr // what nobody here can read is no reason to take no snapshot
	}
	return diag.Errorf("name a place that is this fleet's own: the flag --to, or spec.snapshots.to in fleet.yaml; or, if that fleet is gone, "+
		"move its snapshots out of there",
		"%s has snapshots of the management cluster %s of another fleet, %s (%.8s): %s is the newest", t.place, newest.ManagementCluster,
		newest.FleetName, newest.Fleet, newest.ID)
}

// prune removes the oldest snapshots of the management cluster beyond Keep, and never the one that was kept now. It neither counts nor
// removes those that are another fleet's, and those that none of the keys decrypts, because they may be. That one cannot be removed is no
// error: the new one is there.
func prune(ctx context.Context, place Place, kept *Snapshot, keys secret.Keys, ids []string) {
	if len(ids) <= Keep {
		return
	}
	own := func(id string) bool {
		old, err := find(ctx, place, id, ids, keys)
		damaged := IsUnreadable(err) && !errors.Is(err, secret.ErrNoKey)
		return damaged || err == nil && old.Fleet == kept.Fleet
	}
	earlier := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == kept.ID })
	oldest, stay := earlier[:len(earlier)-Keep+1], earlier[len(earlier)-Keep+1:]
	others := func(id string) bool { return !own(id) }
	// The snapshots of two fleets are seldom in one place, and then the newest one or one of the oldest ones tells so. Otherwise nobody has
	// to read all of them.
	if !slices.ContainsFunc(append(slices.Clone(oldest), stay[len(stay)-1]), others) {
		for _, id := range oldest {
			_ = place.Remove(ctx, id)
		}
		return
	}
	count := 1 // with the one that was kept now
	for _, id := range slices.Backward(earlier) {
		if others(id) {
			continue
		}
		if count++; count > Keep {
			_ = place.Remove(ctx, id)
		}
	}
}
