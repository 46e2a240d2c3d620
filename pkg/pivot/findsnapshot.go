package pivot

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// keysInUse returns the known keys that the fleet repo at root is encrypted for now, or fallback if the fleet repo names no keys.
func keysInUse(root string, known, fallback secret.Keys) (secret.Keys, error) {
	rules, err := fleetsecrets.Rules(root)
	if err != nil || rules == nil {
		return fallback, err
	}
	if inUse := known.For(rules.Recipients()); len(inUse) > 0 {
		return inUse, nil
	}
	return fallback, nil
}

// SealingKeys returns the keys of the fleet for which fleetctl encrypts a new snapshot.
func SealingKeys(p *following.Pushed) (secret.Keys, error) {
	return keysInUse(p.Session.Opts.Dir, p.Access.Keys, p.Access.Keys)
}

// FindSnapshot reads a snapshot of the session's management cluster. An empty id means the newest snapshot.
func FindSnapshot(ctx context.Context, s *session.Session, place snapshot.Place, id string) (*snapshot.Snapshot, error) {
	keys, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	if err != nil {
		return nil, err
	}
	var snap *snapshot.Snapshot
	if id == "" {
		snap, err = newestButOwnNotes(ctx, s, place, keys)
	} else {
		snap, err = snapshot.Find(ctx, place, id, keys)
	}
	if err != nil {
		return nil, err
	}
	if err := handedOverSince(ctx, s, place, snap, keys); err != nil {
		return nil, err
	}
	if snap.Fleet != s.Identity() || snap.ManagementCluster != s.DeclaredAs() {
		return nil, diag.Errorf("run the command in the repo of that fleet, and name the management cluster with --management; or restore one "+
			"of this fleet's: `fleetctl restore --snapshot ID`",
			"the snapshot %s is of management cluster %s of fleet %s (%.8s)", snap.ID, snap.ManagementCluster, snap.FleetName, snap.Fleet)
	}
	return snap, nil
}

// handedOverSince returns an error if a note newer than the snapshot says that the work was handed over.
func handedOverSince(ctx context.Context, s *session.Session, place snapshot.Place, snap *snapshot.Snapshot, keys secret.Keys) error {
	ids, err := place.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id <= snap.ID {
			continue
		}
		later, err := snapshot.Find(ctx, place, id, keys)
		if err != nil {
			return err
		}
		if later.HandedOver != "" && later.Fleet == s.Identity() && !s.OwnNote(later) {
			return refuseHandedOverSince(s.DeclaredAs(), later)
		}
	}
	return nil
}

func refuseHandedOverSince(name string, note *snapshot.Snapshot) error {
	never := "remove the snapshot " + note.ID + ", which has the note"
	if note.HandedOverUID == "" {
		never = "`fleetctl pivot --abort --source-is-gone --to-kubeconfig FILE`, with its kubeconfig; or, if it is lost too, " + never
	}
	return diag.Errorf("connect to "+note.HandedOver+" and ask it (`fleetctl connect`); if it has not taken over, and never will: "+never,
		"%s has handed its work over to %s, or was about to, %s: what it managed before must not be restored", name,
		note.HandedOver, plain.Ago(note.Taken))
}
