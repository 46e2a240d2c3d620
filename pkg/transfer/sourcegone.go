package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// answerTime bounds the wait of an abort for an answer of the source.
const answerTime = 15 * time.Second

// abortAtTarget is abort without a source. It removes the copies and the fence from a target that has not taken over.
func (t *transfer) abortAtTarget(ctx context.Context) (*Result, error) {
	if err := t.refuseLivingSource(ctx); err != nil {
		return nil, err
	}
	var err error
	if t.to.client, err = t.to.target.Client(ctx); err != nil {
		return nil, err
	}
	journal, err := handover.ReadJournal(ctx, t.to.client)
	if err != nil {
		return nil, err
	}
	t.result.Outcome = "nothing-to-do"
	switch {
	case journal == nil || !journal.IsTransferOf(t.name) || journal.Source.Name != t.from.target.Name:
		if journal.Active() {
			return nil, handover.InTheMiddle(t.to.target.Name, journal)
		}
		return t.result, nil
	case journal.Phase.Committed():
		return nil, diag.Errorf("`fleetctl cluster transfer "+t.name+" --to "+t.to.target.Name+"` finishes it",
			"%s has taken cluster %s over: this cannot be undone", t.to.target.Name, t.name)
	}
	step := t.Report.Start("undo the transfer at " + t.to.target.Name)
	side := handover.Side{Name: t.to.target.Name, Client: t.to.client}
	t.result.Report, err = handover.AbortWithoutSource(ctx, side, nil, handover.Telling(step.Detail))
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	t.result.Outcome, t.result.SourceIsGone = "undone", true
	t.result.Next = append(t.result.Next, "fleetctl restore --source-is-gone --management "+t.from.target.Name+
		"    # makes it again, from its last snapshot")
	return t.result, nil
}

// refuseLivingSource returns an error if the source still runs: then it could continue a transfer that is undone at the target alone.
func (t *transfer) refuseLivingSource(ctx context.Context) error {
	name := t.from.target.Name
	client, err := t.reachSource(ctx)
	if err == nil {
		return diag.Errorf("`fleetctl cluster transfer "+t.name+" --abort` undoes the transfer on both sides",
			"%s is not gone: it answers at %s", name, client.Host())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.Report.Warn(fmt.Sprintf("assuming that %s is gone, as you say: it did not answer this machine (%v)", name, err))
	return nil
}

func (t *transfer) reachSource(ctx context.Context) (*kube.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	client, err := t.from.target.Client(ctx)
	if err == nil {
		_, err = client.ServerVersion(ctx)
	}
	return client, err
}

// withoutTarget returns err, the error about a target that does not answer. If a transfer of the cluster to it is under way, the hint says
// how to go on.
func (t *transfer) withoutTarget(ctx context.Context, err error) error {
	if kube.Answered(err) { // it is not gone, and its own hint says what to do
		return err
	}
	if !t.opts.Abort {
		client, unreachable := t.from.target.Client(ctx)
		if unreachable != nil {
			return err
		}
		j, unread := handover.ReadJournal(ctx, client)
		if unread != nil || !j.Active() || !j.IsTransferOf(t.name) || j.Phase.Committed() {
			return err
		}
	}
	return diag.Wrap("", err, "run the same command again when it answers; if "+t.to.target.Name+" is gone for good: `fleetctl cluster "+
		"transfer "+t.name+" --abort --without-target`")
}
