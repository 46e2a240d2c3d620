package transfer

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// rehearse tries what the target's Flux would do with the cluster once the fleet repo declares it there, and changes nothing. at is the
// target, and source has the cluster's objects; it is nil where the target has them.
func (t *transfer) rehearse(ctx context.Context, at, source *kube.Client) error {
	look := t.looking(ctx, at, source)
	if into := t.opts.Into; t.declared || into != nil && t.arrived {
		dir := t.opts.Change.Dir
		if into != nil {
			dir = into.Dir
		}
		repo, err := fleetrepo.Open(dir)
		if err != nil {
			return err
		}
		return look(repo, repo)
	}
	o, err := t.arriving()
	if err != nil {
		return err
	}
	o.DryRun, o.Look = true, look
	_, err = change.Make(ctx, o)
	return err
}

// arriving is the edit of the fleet repo that has the target declare the cluster.
func (t *transfer) arriving() (change.Options, error) {
	if t.opts.Into != nil {
		return t.arrival()
	}
	o := t.opts.Change
	o.Edit, o.Confirm = t.edit, nil
	return o, nil
}

// looking tries the difference between two states of the fleet repo.
func (t *transfer) looking(ctx context.Context, at, source *kube.Client) func(before, after *fleetrepo.Repo) error {
	return func(before, after *fleetrepo.Repo) error {
		a := following.Arrival{
			Namespace: t.key.Namespace, Source: source,
			Before: following.Tree{Dir: before.Dir, Fleet: before.Fleet}, After: following.Tree{Dir: after.Dir, Fleet: after.Fleet},
			Rehearsal: following.Rehearsal{
				Name: t.to.target.Name, Warn: t.warn, Deleted: "what is to be deleted, have deleted before",
			},
		}
		return following.RehearseArrival(ctx, at, a)
	}
}

// warn says a warning once: the cluster is tried before anything is changed, and once more when its objects are at the target.
func (t *transfer) warn(text string) {
	if !t.warned[text] {
		t.warned[text] = true
		t.Report.Warn(text)
	}
}
