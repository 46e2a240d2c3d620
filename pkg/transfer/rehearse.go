package transfer

import (
	"cmp"
	"context"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// rehearse tries what the target's Flux would do with the cluster once the fleet repo declares it at the target. It changes nothing. at is
// the client of the target. source is the client of the source, or nil if the target has the cluster's objects already. rehearse uses the
// content of the Git remote, which Flux reads, with the changes of this transfer.
func (t *transfer) rehearse(ctx context.Context, at, source *kube.Client) error {
	look := t.looking(ctx, at, source)
	here, err := t.checkOut(ctx, t.opts.Change.Dir, t.opts.Change.Git)
	if err != nil {
		return err
	}
	defer here.Remove()
	goes := here
	if into := t.opts.Into; into != nil {
		if goes, err = t.checkOut(ctx, into.Dir, into.Git); err != nil {
			return err
		}
		defer goes.Remove()
	}
	if t.declared || t.opts.Into != nil && t.arrived {
		repo, err := fleetrepo.Open(goes.Dir)
		if err != nil {
			return err
		}
		return look(repo, repo)
	}
	o, err := t.arriving(here.Dir, goes.Dir)
	if err != nil {
		return err
	}
	o.DryRun, o.Commit, o.Push, o.PullRequest, o.Look = true, false, false, false, look
	if _, err = change.Make(ctx, o); err != nil && goes.Differs+here.Differs != "" {
		return diag.Wrap("", err, cmp.Or(diag.Hint(err), "bring the clone of the fleet repo up to date: git pull"))
	}
	return err
}

// checkOut returns the fleet repo in dir as Flux reads it.
func (t *transfer) checkOut(ctx context.Context, dir string, git change.Credentials) (*following.Checkout, error) {
	dir, err := fleetrepo.Find(dir)
	if err != nil {
		return nil, err
	}
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		return nil, err
	}
	auth, err := change.AuthFor(repo, git)
	if err != nil {
		return nil, err
	}
	return t.rehearsal().CheckOut(ctx, dir, repo.Fleet.Spec.Git.Branch, auth)
}

func (t *transfer) rehearsal() following.Rehearsal {
	return following.Rehearsal{Name: t.to.target.Name, Warn: t.warn}
}

// arriving returns the edit that declares the cluster at the target. dir has the files of the fleet repo, and into has those of the
// target's own fleet repo, if it has one.
func (t *transfer) arriving(dir, into string) (change.Options, error) {
	if t.opts.Into != nil {
		return t.arrivalIn(dir, into)
	}
	o := t.opts.Change
	o.Dir, o.Edit, o.Confirm = dir, t.edit, nil
	return o, nil
}

// looking returns a function that compares two states of the fleet repo, and rehearses the Flux of the target with the difference.
func (t *transfer) looking(ctx context.Context, at, source *kube.Client) func(before, after *fleetrepo.Repo) error {
	return func(before, after *fleetrepo.Repo) error {
		a := following.Arrival{
			Namespace: t.key.Namespace, Source: source,
			Before: following.Tree{Dir: before.Dir, Fleet: before.Fleet}, After: following.Tree{Dir: after.Dir, Fleet: after.Fleet},
			Rehearsal: t.rehearsal(),
			Suspended: func(refs map[kube.Ref]bool) { t.suspendedThere = refs },
		}
		return following.RehearseArrival(ctx, at, a)
	}
}

// warn prints each warning once, because the rehearsal runs twice: before anything changes, and when the objects are at the target.
func (t *transfer) warn(text string) {
	if !t.warned[text] {
		t.warned[text] = true
		t.Report.Warn(text)
	}
}
