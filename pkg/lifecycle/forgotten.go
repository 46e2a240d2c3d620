package lifecycle

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// snapshotsAreOf tells whether one of the snapshots in the place, oldest first, was taken of the cluster that client reaches. One that cannot be read was not.
func (s *session) snapshotsAreOf(ctx context.Context, place snapshot.Place, ids []string, client *kube.Client) (bool, error) {
	uid, err := handover.ClusterUID(ctx, client)
	if err != nil {
		return false, err
	}
	keys, err := fleetsecrets.LocalKeys(s.deps, s.stateFleet(), s.opts.Dir, s.opts.AgeKeyFile)
	if err != nil {
		return false, err
	}
	there, err := fleetsecrets.ClusterKeys(ctx, client)
	if err != nil {
		return false, err
	}
	keys = fleetsecrets.Unique(slices.Concat(keys, there))
	for _, id := range slices.Backward(ids) {
		if snap, err := snapshot.Find(ctx, place, id, keys); err == nil && snap.Fleet == s.identity() && snap.UID == uid {
			return true, nil
		}
	}
	return false, nil
}

// refuseForgottenAt is refuseForgotten where there is a cluster: one that has done no work yet, beside snapshots of another one.
func (s *session) refuseForgottenAt(ctx context.Context, client *kube.Client, journal *handover.Journal) error {
	if s.connected || s.standbyOf != "" || journal != nil { // it has taken work over, or handed it over: see refuseHandedOver
		return nil
	}
	place, ids, err := s.snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	if ours, err := s.snapshotsAreOf(ctx, place, ids, client); err != nil || ours {
		return err
	}
	return s.forgotten(place, ids)
}

// refuseForgotten refuses to make a management cluster of which there are snapshots: another machine has it, or had.
func (s *session) refuseForgotten(ctx context.Context) error {
	if s.snapshotsTo() == "" || s.hostErr != nil || s.connected || s.standbyOf != "" {
		return nil //nolint:nilerr // preflight tells it with all else
	}
	if st, err := s.host.State(ctx); err != nil || st != host.StateAbsent {
		return err
	}
	place, ids, err := s.snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	return s.forgotten(place, ids)
}

func (s *session) forgotten(place snapshot.Place, ids []string) error {
	return diag.Errorf(strings.Join([]string{
		"if it lives, give this machine the way there: `fleetctl connect`", "if it is gone: `fleetctl restore --source-is-gone`",
		"if nothing of it is left anywhere, remove the snapshots",
	}, "; "), "another machine has the management cluster %s, or had: there are snapshots of it in %s, %s the newest", s.mgmt.Name, place, ids[len(ids)-1])
}
