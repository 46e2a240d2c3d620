package standing

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/version"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Identity is the change by which the fleet repo names the cluster that client reaches as the management cluster. It is nil if that is
// there already. root has what is committed where Flux reads it. So of two machines that make the management cluster at once only the first
// gets past this, before a Flux follows the repo. goesOn says that the cluster takes the place of the one that is named there.
//
// It refuses a cluster that is another one than the repo names, unless something tells that the named one does not act any more: somebody
// has said so, the fleet repo or the journal of a hand-over says so, or this machine had made it, and finds another one in its place.
func Identity(ctx context.Context, s *session.Session, client *kube.Client, root string, goesOn bool) ([]gitrepo.Change, error) {
	repo, err := within.FS(root)
	if err != nil {
		return nil, err
	}
	uid, there, err := named(ctx, s, client, repo, goesOn)
	if err != nil {
		return nil, err
	}
	if !s.Connected {
		if err := s.Cluster.NoteMade(s.Identity(), uid); err != nil {
			return nil, err
		}
	}
	if there != nil && there.UID == uid {
		return nil, nil
	}
	id := fleetrepo.NewManagementID(uid, &fleetrepo.HandedOver{At: time.Now(), By: ownership.Somebody(), Version: version.Get().Version})
	content, err := id.Content(s.Mgmt.Name)
	return []gitrepo.Change{{Path: s.Layout().Identity(), Content: content}}, err
}

// RefuseSecond refuses a cluster as Identity does, and changes nothing.
func RefuseSecond(ctx context.Context, s *session.Session, client *kube.Client) error {
	if s.StandbyOf != "" || s.NewFleet {
		return nil
	}
	repo, err := s.Published(ctx)
	if err != nil {
		return err
	}
	_, _, err = named(ctx, s, client, repo, false)
	return err
}

// named is the cluster that client reaches, by its UID, and the one that the fleet repo names; nil where it names none. It refuses another
// one than the repo names.
func named(
	ctx context.Context, s *session.Session, client *kube.Client, repo fs.FS, goesOn bool,
) (uid string, there *fleetrepo.ManagementID, err error) {
	if uid, err = handover.ClusterUID(ctx, client); err != nil {
		return "", nil, err
	}
	if there, err = fleetrepo.ReadManagementID(repo, s.Layout()); err != nil {
		return "", nil, err
	}
	if there != nil && there.UID != uid && !goesOn {
		if follows, err := replaces(ctx, s, client, repo, there); err != nil || !follows {
			return "", nil, secondOne(s, there, uid, err)
		}
	}
	return uid, there, nil
}

// replaces tells whether the cluster takes the place of the one that the fleet repo names.
func replaces(ctx context.Context, s *session.Session, client *kube.Client, repo fs.FS, there *fleetrepo.ManagementID) (bool, error) {
	if s.Opts.FormerIsGone || s.Cluster.HasMade(s.Identity(), there.UID) {
		return true, nil
	}
	if ended, err := fleetrepo.Ended(repo, s.Layout(), s.Mgmt.Name, there); err != nil || ended {
		return ended, err
	}
	journal, err := handover.ReadJournal(ctx, client)
	return journal != nil && journal.Whole() && journal.Role == handover.RoleTarget && journal.Phase.Committed(), err
}

// secondOne is the error about a cluster that is not the one which the fleet repo names.
func secondOne(s *session.Session, there *fleetrepo.ManagementID, uid string, err error) error {
	if err != nil {
		return fmt.Errorf("find out whether this cluster takes the place of another one: %w", err)
	}
	return diag.Errorf("if that one lives, give this machine the way there (`fleetctl connect`), and end this one (`fleetctl teardown`); if "+
		"it is gone, and nothing that it made is left: `fleetctl init --source-is-gone`",
		"the fleet repo says that another cluster is the management cluster %s (%s): that has the uid %s and was made %s, and this one has %s. "+
			"Two would make the same clusters", s.Mgmt.Name, s.Layout().Identity(), there.UID, there, uid)
}
