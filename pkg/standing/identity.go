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
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
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
	if there != nil && there.UID != uid && !goesOn && !s.Opts.FormerIsGone {
		place := Place{Cluster: s.Cluster, Fleet: s.Identity(), Name: s.Mgmt.Name, Layout: s.Layout(), Repo: repo}
		if follows, err := place.replaces(ctx, client, there); err != nil || !follows {
			return "", nil, secondOne(s, there, uid, err)
		}
	}
	return uid, there, nil
}

// Place is the place of a management cluster in a fleet, which one cluster has at a time.
type Place struct {
	// Cluster is what this machine keeps of the management cluster.
	Cluster state.Cluster
	// Fleet is the identity of the fleet, and Name the name of the management cluster in it.
	Fleet, Name string
	Layout      layout.Layout
	// Repo has the files of the fleet repo.
	Repo fs.FS
}

// Other returns which cluster has the place according to the fleet repo, if it is another one than the cluster that client reaches, and if
// nothing tells that the reached cluster takes the place, is restored to take it, or has given it away. Otherwise it returns nil.
func (p Place) Other(ctx context.Context, client *kube.Client) (*fleetrepo.ManagementID, error) {
	there, err := fleetrepo.ReadManagementID(p.Repo, p.Layout)
	if err != nil || there == nil {
		return nil, err
	}
	uid, err := handover.ClusterUID(ctx, client)
	if err != nil || there.UID == uid {
		return nil, err
	}
	if follows, err := p.replaces(ctx, client, there); err != nil || follows {
		return nil, err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil || journal != nil && journal.Whole() && (gone(journal) || restoring(journal)) {
		return nil, err
	}
	return there, nil
}

// gone tells whether the cluster of the journal has given its work away.
func gone(journal *handover.Journal) bool {
	return journal.Role == handover.RoleSource && journal.Phase.Committed()
}

// restoring tells whether a restore into the cluster of the journal is under way. Until it has taken over, the fence keeps it from acting.
func restoring(journal *handover.Journal) bool {
	return journal.Role == handover.RoleTarget && (journal.Snapshot != "" || journal.Around) && !journal.Phase.Committed()
}

// replaces tells whether the cluster takes the place of the one that the fleet repo names.
func (p Place) replaces(ctx context.Context, client *kube.Client, there *fleetrepo.ManagementID) (bool, error) {
	if p.Cluster.HasMade(p.Fleet, there.UID) {
		return true, nil
	}
	if ended, err := fleetrepo.Ended(p.Repo, p.Layout, p.Name, there); err != nil || ended {
		return ended, err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil || journal == nil || !journal.Whole() || journal.Role != handover.RoleTarget || !journal.Phase.Committed() {
		return false, err
	}
	// The journal stays for ever. It tells of the cluster in the fleet repo only if that handed over, not if another one did before. Where
	// another tool restored the objects, nobody knows whose they were.
	return journal.Around || journal.Source.UID == there.UID, nil
}

// secondOne is the error about a cluster that is not the one which the fleet repo names.
func secondOne(s *session.Session, there *fleetrepo.ManagementID, uid string, err error) error {
	if err != nil {
		return fmt.Errorf("find out whether this cluster takes the place of another one: %w", err)
	}
	return diag.Errorf("if that one lives, give this machine the way there (`fleetctl connect`), and end this one (`fleetctl teardown`); if "+
		"it is gone: `fleetctl restore --source-is-gone` brings back its snapshot, and finishes a restore that was interrupted here; only if "+
		"nothing that it made is left: `fleetctl init --source-is-gone`",
		"the fleet repo says that another cluster is the management cluster %s (%s): that has the uid %s and was made %s, and this one has %s. "+
			"Two would make the same clusters", s.Mgmt.Name, s.Layout().Identity(), there.UID, there, uid)
}
