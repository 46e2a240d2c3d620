package standing

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// RefuseAnother refuses to make a management cluster that the fleet repo says was made before, where nothing else tells what has become of
// it: no host, no record and no note of its end on this machine, and no note of its end in the fleet repo. It may live, and two would make
// the same clusters. The caller has found no snapshot of it, perhaps because the place of the snapshots is not mounted. gone says that
// somebody has agreed that it does not live.
func RefuseAnother(ctx context.Context, s *session.Session, gone bool) error {
	if gone || s.HostErr != nil || s.Connected || s.StandbyOf != "" || s.Traits().Elsewhere {
		return nil //nolint:nilerr // preflight tells HostErr with all else; a host that is others' is no second one
	}
	st, err := s.Host.State(ctx)
	if err != nil || st != host.StateAbsent {
		return err
	}
	dir, layout := s.Opts.Dir, s.Layout()
	if !within.Exists(dir, layout.SyncFile()) || within.Exists(dir, layout.Ended(s.Mgmt.Name)) {
		return nil
	}
	if _, err := s.Cluster.Load(); err == nil || s.Cluster.Ended(s.Identity()) {
		return nil // this machine has made it, and knows what has become of it
	}
	looked, mount := "fleet.yaml declares no place of snapshots (spec.snapshots.to)", ""
	if s.SnapshotsTo() != "" {
		place, err := s.Place()
		if err != nil {
			return err
		}
		looked = "there is no snapshot of it in " + place.String()
		mount = "if its snapshots are elsewhere, or in a folder that is not mounted here, bring them there and run the same command again; "
	}
	return diag.Errorf(mount+"if it lives, give this machine the way there: `fleetctl connect`; if it is gone, and nothing that it made is "+
		"left: --source-is-gone makes it again from Git alone",
		"whether the management cluster %s lives cannot be told: the fleet repo was given to its Flux before (%s), this machine has no host and "+
			"no record of it, and %s", s.Mgmt.Name, layout.SyncFile(), looked)
}
