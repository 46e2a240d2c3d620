package standing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// RefuseAnother refuses to make a management cluster that the fleet repo says was made before, where nothing else tells what has become of
// it: no host, no record and no note of its end on this machine, and no note of its end in the fleet repo. It may live, and two would make
// the same clusters. What this machine knows counts only for the cluster that the fleet repo names: another machine may have made the
// management cluster again since. The caller has found no snapshot of it, perhaps because the place of the snapshots is not mounted.
//
// RefuseAnother reads the fleet repo on this machine, which may be an old clone: see RefusePublished.
func RefuseAnother(ctx context.Context, s *session.Session) error {
	return refuseAnother(ctx, s, func() (fs.FS, error) { return within.FS(s.Opts.Dir) })
}

// RefusePublished is RefuseAnother with the fleet repo as its remote has it. It waits for a remote that does not answer.
func RefusePublished(ctx context.Context, s *session.Session) error {
	return refuseAnother(ctx, s, func() (fs.FS, error) { return s.Published(ctx) })
}

func refuseAnother(ctx context.Context, s *session.Session, read func() (fs.FS, error)) error {
	if s.Opts.FormerIsGone || s.HostErr != nil || s.Connected || s.StandbyOf != "" || s.NewFleet {
		return nil //nolint:nilerr // preflight tells HostErr with all else
	}
	here, err := lookHere(ctx, s)
	if err != nil || here == nil {
		return err
	}
	repo, err := read()
	if err != nil {
		return err
	}
	file := s.Layout().SyncFile()
	if _, err := fs.Stat(repo, file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	made, err := fleetrepo.ReadManagementID(repo, s.Layout())
	if err != nil {
		return err
	}
	if ended, err := fleetrepo.Ended(repo, s.Layout(), s.Mgmt.Name, made); err != nil || ended {
		return err
	}
	who := here.says
	if here.knows {
		if made == nil || s.Cluster.HasMade(s.Identity(), made.UID) {
			return nil
		}
		who = "this machine knows only another one of this name"
	}
	if s.Mgmt.Host.Type == v1alpha1.HostExisting {
		if free, err := isFree(ctx, s); err != nil || !free {
			return err
		}
	}
	if made != nil {
		file = fmt.Sprintf("%s; %s was made %s", file, s.Mgmt.Name, made)
	}
	return untold(s, file, who)
}

// untold is the error about a management cluster of which only the fleet repo tells.
func untold(s *session.Session, file, who string) error {
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
		s.Mgmt.Name, file, who, looked)
}

// missing is a management cluster that is not on this machine.
type missing struct {
	says  string // in words, what this machine does not know of it
	knows bool   // this machine has made one of that name, and knows what has become of that
}

// lookHere tells what this machine knows of a management cluster that it would make; nil where it would make none.
func lookHere(ctx context.Context, s *session.Session) (*missing, error) {
	record, err := s.Cluster.Load()
	known := err == nil
	switch {
	case s.Mgmt.Host.Type == v1alpha1.HostExisting:
		if known && sameWay(record, s.Record()) {
			return nil, nil //nolint:nilnil // whoever made the cluster there anew knows it
		}
		who := "this machine has no record of it"
		if known {
			who = fmt.Sprintf("this machine knows it by the context %s", record.Context)
		}
		return &missing{
			says:  fmt.Sprintf("the cluster of the context %s is no fleet's yet, %s", s.Mgmt.Host.Existing.Context, who),
			knows: s.Cluster.Ended(s.Identity()),
		}, nil
	case s.Traits().Elsewhere:
		return nil, nil //nolint:nilnil // its parent makes it, and init finds it there
	}
	st, err := s.Host.State(ctx)
	if err != nil || st != host.StateAbsent {
		return nil, err // a host that is others' is no second one
	}
	return &missing{says: "this machine has no host and no record of it", knows: known || s.Cluster.Ended(s.Identity())}, nil
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
