package handover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// stand fences the copies of the graph's objects at the target, and stops the controllers there if needed. An earlier
// call stays valid as long as the API groups are the same.
func (r *run) stand(ctx context.Context, graph *capi.Graph) error {
	if r.stands != nil && slices.Equal(r.stands, graph.Groups) {
		return nil
	}
	if err := r.bypass(ctx, r.target, graph.Groups); err != nil {
		return err
	}
	if err := r.target.raise(ctx, r.targetPolicy(graph.Groups)); err != nil {
		return err
	}
	if !r.target.journal.Hold {
		if err := r.halt(ctx, r.target, r.target.manager.ProviderDeployments); err != nil {
			return err
		}
		if err := r.target.untilPassed(ctx, graph); err != nil {
			return err
		}
	}
	r.stands = graph.Groups
	return nil
}

// copy creates the objects at the target, whose controllers cannot act on them yet.
func (r *run) copy(ctx context.Context, graph *capi.Graph) error {
	if err := r.stand(ctx, graph); err != nil {
		return err
	}
	return r.target.manager.Copy(ctx, graph, capi.CopyOptions{
		ID: r.target.journal.ID, Hold: r.target.journal.Hold, Progress: r.count(PhaseCopied, "copying the objects to "+r.target.Name),
	})
}

// verify compares the objects of both sides.
func (r *run) verify(ctx context.Context, graph *capi.Graph) error {
	r.tell(PhaseVerified, "comparing both sides")
	differences, copies, err := r.target.manager.Differences(ctx, graph, r.target.journal.ID)
	if err != nil {
		return err
	}
	if r.began { // otherwise an earlier run may have copied objects of other kinds, too
		r.copies = copies
	}
	if len(differences) == 0 {
		return r.check(ctx)
	}
	const most = 10
	shown := strings.Join(differences[:min(most, len(differences))], "; ")
	if len(differences) > most {
		shown += fmt.Sprintf("; and %d more", len(differences)-most)
	}
	return diag.Errorf("correct this and run the same command again; "+r.undoHint(),
		"compare both sides: %s", shown)
}

// check calls Options.Check, which says whether the target may continue with the copies.
func (r *run) check(ctx context.Context) error {
	if r.Check == nil {
		return nil
	}
	r.tell(PhaseVerified, "trying what the Flux of "+r.target.Name+" would do")
	err := r.Check(ctx, r.target.as)
	if r.tries {
		return err // a try is undone in any case
	}
	return diag.AndHint(err, "correct this and run the same command again; "+r.undoHint())
}

// commit hands the work over. Before that, it notes in the source's journal that the commit may happen. Until this note,
// an abort does not have to ask the target. The records of the workload clusters come next, because another hand-over of
// the same work may have been faster.
func (r *run) commit(ctx context.Context) error {
	if err := r.mark(ctx, PhaseVerified); err != nil {
		return err
	}
	next := *r.target.journal
	next.Phase, next.Owner, next.Epoch = PhaseCommitted, r.target.party, next.Epoch+1
	if err := r.claimOwners(ctx, next.owner()); err != nil {
		return err
	}
	if err := r.target.put(ctx, &next); err != nil {
		return err
	}
	r.tell(PhaseCommitted, r.target.Name+" has taken over")
	return nil
}
