package standing

import (
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// RefuseAnother refuses to make a management cluster if the fleet repo says that it was made before, and nothing tells
// what has become of it: this machine has no host, no record and no note of its end, and the fleet repo has no note of
// its end. It may still run, and two management clusters would make the same clusters. The caller has found no snapshot
// of it, perhaps because the place of the snapshots is not mounted. gone says that the user has confirmed that it does
// not run any more.
func RefuseAnother(ctx context.Context, s *session.Session, gone bool) error {
	if gone || s.HostErr != nil || s.Connected || s.StandbyOf != "" {
		return nil //nolint:nilerr // preflight tells HostErr with all else
	}
	dir, layout := s.Opts.Dir, s.Layout()
	if !within.Exists(dir, layout.SyncFile()) || within.Exists(dir, layout.Ended(s.Mgmt.Name)) || s.Cluster.Ended(s.Identity()) {
		return nil
	}
	here, err := lookHere(ctx, s)
	if err != nil || here == "" {
		return err
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
	return diag.Errorf(mount+"if it runs, give this machine access: `fleetctl connect`; if it is gone, and nothing that it made is "+
		"left: --source-is-gone makes it again from Git alone",
		"whether the management cluster %s lives cannot be told: the fleet repo was given to its Flux before (%s), %s, and %s",
		s.Mgmt.Name, layout.SyncFile(), here, looked)
}

// lookHere says in words that this machine does not know the management cluster; "" if it does.
func lookHere(ctx context.Context, s *session.Session) (string, error) {
	record, err := s.Cluster.Load()
	known := err == nil
	switch {
	case s.Mgmt.Host.Type == v1alpha1.HostExisting:
		if known && sameWay(record, s.Record()) {
			return "", nil // the user who made the cluster anew there knows about it
		}
		free, err := isFree(ctx, s)
		if err != nil || !free {
			return "", err
		}
		who := "this machine has no record of it"
		if known {
			who = fmt.Sprintf("this machine knows it by the context %s", record.Context)
		}
		return fmt.Sprintf("the cluster of the context %s is no fleet's yet, %s", s.Mgmt.Host.Existing.Context, who), nil
	case known || s.Traits().Elsewhere:
		return "", nil // this machine has made the cluster, and knows what has become of it
	}
	st, err := s.Host.State(ctx)
	if err != nil || st != host.StateAbsent {
		return "", err // a host of other users is not a second one
	}
	return "this machine has no host and no record of it", nil
}

// sameWay tells whether two records name the same context of the same kubeconfig.
func sameWay(a *state.Record, b state.Record) bool {
	return a.HostType == b.HostType && a.Context == b.Context && a.KubeconfigSource == b.KubeconfigSource
}

// isFree tells whether an existing cluster has nothing of the management cluster in the fleet repo: no claim, no
// journal, and no Flux that follows its folder.
func isFree(ctx context.Context, s *session.Session) (bool, error) {
	there, err := Find(ctx, s)
	if err != nil || there == nil || there.Claim != nil {
		return false, err
	}
	journal, err := handover.ReadJournal(ctx, there.Client)
	if err != nil || journal != nil {
		return false, err
	}
	found, err := following.Find(ctx, s, there.Client, there.Claim, following.View{})
	if err != nil {
		return false, err
	}
	return !found.FollowsFleet(ctx), nil
}
