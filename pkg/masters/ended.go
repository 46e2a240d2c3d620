package masters

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// noteEnded notes in the fleet repo that the parent was torn down, so that another machine may make it again for another management
// cluster. uid is the parent as its own API server said; "" if it did not answer. With a pull request the note waits for its merge, and the
// result says so. If the note cannot be pushed, another machine asks its user.
func (m *master) noteEnded(ctx context.Context, uid string) {
	fleet, err := fleetrepo.ReadIdentity(m.opts.Dir)
	if err == nil {
		run, uid := thisRun(), cmp.Or(uid, m.parentHere().LastMade(fleet))
		var noted *change.Result
		noted, err = m.carry(ctx, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.NoteEnded(m.result.Parent, uid, run) })
		if err == nil && noted.PullRequest != nil {
			m.result.Next = append(m.result.Next, fmt.Sprintf("merge %s    # it says that %s has ended; until then, bootstrap on another machine "+
				"makes it again only with --source-is-gone", noted.PullRequest.URL, m.result.Parent))
		}
	}
	if err != nil {
		m.Report.Warn(fmt.Sprintf("the fleet repo does not say that %s has ended: on another machine, bootstrap makes it again only with "+
			"--source-is-gone: %v", m.result.Parent, err))
	}
}

// noteEndedBefore notes what an earlier run of this machine did not come to note: it has torn the parent down, and was interrupted.
func (m *master) noteEndedBefore(ctx context.Context) error {
	fleet, err := fleetrepo.ReadIdentity(m.opts.Dir)
	if err != nil || !m.parentHere().Ended(fleet) {
		return err
	}
	repo, err := fleetrepo.Open(m.opts.Dir)
	if err != nil {
		return err
	}
	uid, err := repo.UnnotedEnd(m.result.Parent)
	if err != nil || !m.parentHere().HasMade(fleet, uid) {
		return err
	}
	m.noteEnded(ctx, uid)
	return nil
}

// parentHere is what this machine has of the parent.
func (m *master) parentHere() state.Cluster { return m.Store.Cluster(m.result.Parent) }

// carry makes an edit of the fleet repo, and pushes it or opens a pull request.
func (m *master) carry(ctx context.Context, edit func(*fleetrepo.Repo) (*fleetrepo.Edit, error)) (*change.Result, error) {
	o := m.opts.Change
	o.Dir, o.Git, o.Push, o.Edit = m.opts.Dir, m.opts.Git, !o.PullRequest, edit
	changed, err := change.Make(ctx, o)
	if err == nil && changed.Changed {
		m.changed(changed)
	}
	return changed, err
}
