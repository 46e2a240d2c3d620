package transfer

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkCarry finds out whether the change of the fleet repo, and that of the target's own one, could be pushed. A remote that does not
// answer, or that refuses pushes, would otherwise be noticed only when the target has taken over and no Flux applies the cluster.
func (t *transfer) checkCarry(ctx context.Context) error {
	if t.opts.Into == nil {
		err := change.CheckCarry(ctx, t.opts.Change)
		if !t.opts.Change.PullRequest {
			err = change.ByPullRequest(err)
		}
		return diag.Wrap("", err, t.hintBefore(err))
	}
	if !t.arrived {
		o := t.opts.Change
		o.Dir, o.Git, o.Push = t.opts.Into.Dir, t.opts.Into.Git, true
		if err := change.CheckCarry(ctx, o); err != nil {
			return diag.Wrap("look at the remote of the fleet repo of "+t.to.target.Name, err, t.hintBefore(err))
		}
	}
	if t.declared {
		return nil
	}
	err := change.CheckCarry(ctx, t.opts.Change)
	return diag.Wrap("", err, t.hintBefore(err))
}

// hintBefore returns the hint for a remote that would not take the change of the fleet repo: the target has not taken over.
func (t *transfer) hintBefore(err error) string {
	safe := "nothing has been handed over"
	if t.journal.Active() {
		safe = "the target has not taken over yet; the same command goes on then, and --abort undoes what has begun"
	}
	if hint := diag.Hint(err); hint != "" {
		return hint + "; " + safe
	}
	return safe
}
