package standing

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// SnapshotsAreOf tells whether one of the snapshots in the place, oldest first, was taken of the cluster that client
// reaches. A snapshot that cannot be read does not count.
func SnapshotsAreOf(ctx context.Context, s *session.Session, place snapshot.Place, ids []string, client *kube.Client) (bool, error) {
	uid, err := handover.ClusterUID(ctx, client)
	if err != nil {
		return false, err
	}
	keys, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	if err != nil {
		return false, err
	}
	there, err := fleetsecrets.ClusterKeys(ctx, client)
	if err != nil {
		return false, err
	}
	keys = fleetsecrets.Unique(slices.Concat(keys, there))
	for _, id := range slices.Backward(ids) {
		if snap, err := snapshot.Find(ctx, place, id, keys); err == nil && snap.Fleet == s.Identity() && snap.UID == uid {
			return true, nil
		}
	}
	return false, nil
}

// RefuseForgottenAt is RefuseForgotten for a cluster that exists and has done no work yet, if there are snapshots of
// another cluster.
func RefuseForgottenAt(ctx context.Context, s *session.Session, client *kube.Client, journal *handover.Journal) error {
	if s.Connected || s.StandbyOf != "" || journal != nil { // the cluster has taken work over, or handed it over: see RefuseHandedOver
		return nil
	}
	place, ids, err := s.Snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	if ours, err := SnapshotsAreOf(ctx, s, place, ids, client); err != nil || ours {
		return err
	}
	return forgotten(s, place, ids)
}

// RefuseForgotten refuses to make a management cluster if there are snapshots of it, because another machine has made
// it.
func RefuseForgotten(ctx context.Context, s *session.Session) error {
	if s.SnapshotsTo() == "" || s.HostErr != nil || s.Connected || s.StandbyOf != "" {
		return nil //nolint:nilerr // preflight tells it with all else
	}
	if st, err := s.Host.State(ctx); err != nil || st != host.StateAbsent {
		return err
	}
	place, ids, err := s.Snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	return forgotten(s, place, ids)
}

func forgotten(s *session.Session, place snapshot.Place, ids []string) error {
	return diag.Errorf(strings.Join([]string{
		"if it runs, give this machine access: `fleetctl connect`", "if it is gone: `fleetctl restore --source-is-gone`",
		"if nothing of it is left anywhere, remove the snapshots",
	}, "; "), "another machine has the management cluster %s, or had: there are snapshots of it in %s, %s the newest", s.Mgmt.Name,
		place, ids[len(ids)-1])
}
