package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// openPlace is where the snapshots of a management cluster are kept: as it is given or, where it is not, as fleet.yaml declares it.
func openPlace(given, declared, cluster string) (snapshot.Place, error) {
	where := cmp.Or(given, declared)
	if where == "" {
		return nil, diag.Usage("give a folder that outlives the management cluster, or declare one in fleet.yaml: spec.snapshots.to",
			"nothing says where the snapshots of %s are kept", cluster)
	}
	if scheme, _, is := strings.Cut(where, "://"); is {
		return nil, diag.Usage("give a folder: a mounted volume or a share", "snapshots cannot be kept in a place of the kind %s://", scheme)
	}
	return snapshot.NewFolder(where, cluster)
}

// sealingKeys are the age keys of a fleet that this machine knows: the same that its secrets in Git are encrypted with.
func sealingKeys(d management.Deps, fleet state.Fleet, root, file string) (secret.Keys, error) {
	keys, err := localKeys(d, fleet, root, file)
	if err != nil || len(keys) == 0 {
		return keys, err
	}
	rules, err := readRules(root)
	if err != nil || rules == nil {
		return keys, err
	}
	return unique(append(keys.For(rules.Recipients()), keys...)), nil // the one in use first
}

// findSnapshot reads a snapshot of the session's management cluster, the newest where id is empty.
func (s *session) findSnapshot(ctx context.Context, place snapshot.Place, id string) (*snapshot.Snapshot, error) {
	keys, err := sealingKeys(s.Deps, s.stateFleet(), s.opts.Dir, s.opts.AgeKeyFile)
	if err != nil {
		return nil, err
	}
	snap, err := snapshot.Find(ctx, place, id, keys)
	if err != nil {
		return nil, err
	}
	if snap.Fleet != s.identity() || snap.ManagementCluster != s.mgmt.Name {
		return nil, diag.Errorf("run it in that fleet's repo, and name the management cluster with --management",
			"the snapshot %s is of management cluster %s of fleet %s (%.8s)", snap.ID, snap.ManagementCluster, snap.FleetName, snap.Fleet)
	}
	return snap, nil
}

// ago is a time as people say it.
func ago(t time.Time) string {
	return fmt.Sprintf("%s ago", time.Since(t).Round(time.Second))
}
