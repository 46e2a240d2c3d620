package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	prune(ctx, place, s.ID, ids)
	return nil
}

// Find reads the snapshot of that ID or, with an empty one, the newest; fs.ErrNotExist where there is none.
func Find(ctx context.Context, place Place, id string, keys secret.Keys) (*Snapshot, error) {
	ids, err := place.List(ctx)
	if err != nil {
		return nil, err
	}
	if id == "" && len(ids) > 0 {
		id = ids[len(ids)-1]
	}
	if id == "" {
		return nil, diag.Wrap("find a snapshot", fmt.Errorf("%w in %s", fs.ErrNotExist, place), "`fleetctl backup` takes one")
	}
	sealed, err := place.Load(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Wrap("find the snapshot "+id, fmt.Errorf("%w in %s", fs.ErrNotExist, place), "there are: "+strings.Join(ids, ", "))
	}
	if err != nil {
		return nil, diag.Wrap("read the snapshot "+id+" in "+place.String(), err, "")
	}
	s, err := Open(sealed, keys)
	if err == nil && s.ID != id {
		err = diag.Errorf("somebody has renamed the file: find out who, and why", "it says that it is the snapshot %s", s.ID)
	}
	return s, diag.Wrap("open the snapshot "+id+" in "+place.String(), err, diag.Hint(err))
}
