package masters

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ownrepo"
)

// openOwn opens the new management cluster's own fleet repo, if it has one. openOwn fills an empty repo.
func (m *master) openOwn(ctx context.Context) error {
	if m.opts.Master.Repository == nil {
		return nil
	}
	name := m.result.Cluster
	if m.opts.Change.PullRequest {
		return diag.Usage("leave --pr out", "%s has its own fleet repo, and the clusters that it takes over are pushed to both repos", name)
	}
	step := m.Report.Start("open the fleet repo of " + name)
	own, err := ownrepo.Open(ctx, m.Deps, ownrepo.Options{
		Dir: m.opts.Dir, Cluster: name, At: m.opts.Own.Dir, Git: m.opts.Own.Git, AgeKeyFile: m.opts.AgeKeyFile, NoVerify: m.opts.NoVerify,
		Create: m.opts.Own.Create,
	})
	if err == nil {
		err = m.readOwn(own)
	}
	if err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	return nil
}

// checkOwn finds out whether the new management cluster's own fleet repo takes pushes, before the parent makes anything for it. Its
// clusters arrive there with a push each.
func (m *master) checkOwn(ctx context.Context) error {
	if m.own == nil {
		return nil
	}
	o := m.opts.Change
	o.Dir, o.Git, o.Push = m.own.Dir, m.opts.Own.Git, true
	return diag.Wrap("look at the remote of the fleet repo of "+m.result.Cluster, change.CheckCarry(ctx, o),
		"the clusters of "+m.result.Cluster+" are pushed there: give a token that may push to its branch, --own-git-token-file; "+
			"nothing has been made yet")
}

// beginAnew is the hint if this machine does not have the age key of the new management cluster's own fleet repo.
func (m *master) beginAnew(err error) string {
	if m.own == nil {
		return ""
	}
	return ownrepo.BeginAnew(err, m.opts.Dir, m.result.Cluster, m.own.Dir)
}

// moveOut removes from the fleet repo what the new management cluster's own repo has. It runs after init of the parent, because that init
// connects the repo to its remote.
func (m *master) moveOut(ctx context.Context) error {
	if m.own == nil {
		return nil
	}
	name, o := m.result.Cluster, m.opts.Change
	o.Dir, o.Git, o.Push = m.opts.Dir, m.opts.Git, true
	o.Edit = func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		into, err := fleetrepo.Open(m.own.Dir)
		if err != nil {
			return nil, err
		}
		return r.MoveToOwnRepo(name, into)
	}
	changed, err := change.Make(ctx, o)
	if err != nil {
		return diag.Wrap("take out of the fleet repo what that of "+name+" has", err, "run the same command again")
	}
	if changed.Changed {
		m.changed(changed)
	}
	return nil
}

// readOwn adds the settings of the new management cluster from its own fleet repo.
func (m *master) readOwn(own *ownrepo.Repo) error {
	repo, err := fleetrepo.Open(own.Dir)
	if err != nil {
		return err
	}
	if m.opts.Master, err = repo.OwnMaster(m.opts.Master); err != nil {
		return err
	}
	m.own, m.result.Repo = own, own.Dir
	return nil
}

// dirOf returns the folder of the fleet repo that declares a management cluster.
func (m *master) dirOf(name string) string {
	if m.own != nil && name == m.result.Cluster {
		return m.own.Dir
	}
	return m.opts.Dir
}

// changed adds changes of a fleet repo to the result, and ignores nil.
func (m *master) changed(changes ...*change.Result) {
	for _, c := range changes {
		if c != nil {
			m.result.Changes = append(m.result.Changes, c)
		}
	}
}
