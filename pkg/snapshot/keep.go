package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

// Keep is how many snapshots of a management cluster a place keeps.
const Keep = 10

// Put seals a snapshot, keeps it in the place under the ID that it has, and removes the oldest beyond Keep. Commands use a Turn, which
// finds the ID.
func Put(ctx context.Context, place Place, s *Snapshot, keys secret.Keys) error {
	ids, err := put(ctx, place, s, keys)
	if err != nil {
		return err
	}
	prune(ctx, place, s, keys, ids)
	return nil
}

// none is the error for a place without a snapshot. It is an fs.ErrNotExist. id is the ID of the wanted snapshot, or "" for the newest.
func none(place Place, id string) error {
	what := "find a snapshot"
	if id != "" {
		what = "find the snapshot " + id
	}
	return diag.Wrap(what, absent{fmt.Sprintf("%s has no snapshot of this management cluster", place)},
		"look whether this is the right place, and whether it is mounted: --from; while the management cluster "+
			"lives, `fleetctl backup --to PLACE` takes a snapshot")
}

// absent is an fs.ErrNotExist in words about snapshots.
type absent struct{ text string }

func (a absent) Error() string { return a.text }

func (absent) Is(target error) bool { return target == fs.ErrNotExist }

// Find reads the snapshot of that ID or, with an empty one, the newest; fs.ErrNotExist where there is none.
func Find(ctx context.Context, place Place, id string, keys secret.Keys) (*Snapshot, error) {
	ids, err := place.List(ctx)
	if err != nil {
		return nil, err
	}
	if id == "" && len(ids) > 0 {
		id = ids[len(ids)-1]
	}
	if len(ids) == 0 {
		return nil, none(place, id)
	}
	return find(ctx, place, id, ids, keys)
}

// find is Find in a place that has been listed.
func find(ctx context.Context, place Place, id string, ids []string, keys secret.Keys) (*Snapshot, error) {
	sealed, err := place.Load(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		hint := "there are: " + strings.Join(ids, ", ")
		if slices.Contains(ids, id) {
			hint = "somebody may have removed it just now: run the same command again. If that says the same, the place has lost it" +
				older(place, id, ids)
		}
		return nil, diag.Wrap("find the snapshot "+id, absent{place.String() + " does not have it"}, hint)
	}
	if err != nil {
		hint := cmp.Or(diag.Hint(err), "run the same command again")
		if before := older(place, id, ids); before != "" {
			hint += ". Do without it only if it is lost for good" + before
		}
		return nil, diag.Wrap("read the snapshot "+id+" in "+place.String(), err, hint)
	}
	s, err := Open(sealed, keys)
	if err == nil && s.ID != id {
		err = diag.Errorf("somebody has renamed the file: find out who, and why", "it says that it is the snapshot %s", s.ID)
	}
	if err != nil {
		return nil, diag.Wrap("open the snapshot "+id+" in "+place.String(), unreadable{err}, openHint(err, place, id, ids))
	}
	return s, nil
}

// unreadable is the error of a snapshot that is there and cannot be opened.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// IsUnreadable tells whether Find has found a snapshot and could not open it: with the keys that were given, or at all.
func IsUnreadable(err error) bool {
	_, is := errors.AsType[unreadable](err)
	return is
}

// openHint returns the hint of err, the reason why the snapshot id cannot be opened.
func openHint(err error, place Place, id string, ids []string) string {
	if errors.Is(err, secret.ErrNoKey) {
		return diag.Hint(err) + "; if no key of this fleet decrypts it, another fleet has a management cluster of this name, and keeps its " +
			"snapshots there, too: bring those to a place of their own, and run the same command again"
	}
	return diag.Hint(err) + older(place, id, ids)
}

// older says what to do about a snapshot that is lost. While it is listed, no earlier one can be restored, because it may be a note that
// another management cluster has the work. Only the user can know that it is not. older is "" if there is no earlier snapshot.
func older(place Place, id string, ids []string) string {
	i := slices.Index(ids, id)
	if i < 1 {
		return ""
	}
	return fmt.Sprintf(". It may say that another management cluster has the work. If you know that none has it, move %s out of %s: "+
		"the snapshot before it is %s", id, place, ids[i-1])
}
