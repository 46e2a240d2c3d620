package handover

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// recall derives the source's journal from the target's journal, if somebody has deleted the source's. It changes only
// the journal in memory, which the first step of the run writes. Without recall, the source would look as if the
// hand-over had never begun, and an abort would delete the copies of a target that has the work.
//
// The journal of the source was deleted by somebody else, not by a run: a run writes the source's journal first, and
// deletes it last.
func (r *run) recall() {
	if r.source == nil || r.source.journal != nil {
		return
	}
	t := r.target.journal
	if !t.Active() || t.Role != RoleTarget || t.Snapshot != "" || t.Around || t.Source.UID != r.source.party.UID {
		return
	}
	r.source.journal = t.last()
	r.source.journal.Role = RoleSource
	if t.Phase == PhaseAborting {
		return // an abort has removed it, and could not clear up the target
	}
	r.warn("somebody has deleted the journal of %s: continuing from the journal of %s", r.source.Name, r.target.Name)
}

// recallTarget is recall for the target's journal, before an abort. Without it, the copies and the fence at the target
// would stay. tookOver has already found out that the target does not have the work. The journal of a standby cannot be
// derived from the source's. In each phase the target may have had a journal: both sides are fenced before the journals
// say so, and an abort may have been cut off before it was done with the target. If the target had none, or an abort has
// deleted it, there is nothing to undo.
func (r *run) recallTarget() {
	s := r.source.journal
	if r.target.journal != nil || !s.Active() || s.Role != RoleSource || s.Activates {
		return
	}
	r.target.journal = s.last()
	r.target.journal.Role = RoleTarget
}

// CheckFence returns an error if a hand-over has fenced a management cluster whose journal somebody has deleted. Only
// the target's journal then tells what has to be undone.
func CheckFence(ctx context.Context, given Side) error {
	s, err := lookAtSide(ctx, given)
	if err != nil || s.journal != nil {
		return err
	}
	fenced, err := s.isFenced(ctx)
	if err != nil || !fenced {
		return err
	}
	return diag.Errorf("name the target, whose journal tells what has to be undone: `fleetctl pivot --abort --to-kubeconfig FILE`",
		"%s is fenced by a hand-over, and its journal, the Secret %s, was deleted", s.Name, JournalKey)
}
