package handover

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// recall puts in mind what the journal of the source said, where somebody has deleted it: the target's tells of the same hand-over. Without
// this the source would look as if it had never begun, and an abort would take the copies away from a target that has the work. The run
// writes it with its first step.
//
// No run leaves the source without a journal while the target is in the middle: the source's comes first, and goes last.
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
	r.warn("the journal of %s was deleted: going on from that of %s", r.source.Name, r.target.Name)
}

// recallTarget is recall for a target, before an abort: what was copied and fenced there would stay. That the target may have the work is
// settled by then (tookOver), and a standby's journal cannot be made up. A source that is fenced was noted at the target before; an abort
// that was cut off has been there first.
func (r *run) recallTarget() {
	s := r.source.journal
	if r.target.journal != nil || !s.Active() || s.Role != RoleSource || !s.Phase.reached(PhaseFenced) || s.Activates {
		return
	}
	r.target.journal = s.last()
	r.target.journal.Role = RoleTarget
}

// CheckFence is an error where a hand-over has fenced a management cluster whose journal somebody has deleted: only its target can tell
// what is to be undone.
func CheckFence(ctx context.Context, given Side) error {
	s, err := lookAtSide(ctx, given)
	if err != nil || s.journal != nil {
		return err
	}
	fenced, err := s.isFenced(ctx)
	if err != nil || !fenced {
		return err
	}
	return diag.Errorf("give the way to the target, whose journal tells: `fleetctl pivot --abort --to-kubeconfig FILE`",
		"%s is fenced by a hand-over, and its journal, the Secret %s, was deleted", s.Name, JournalKey)
}
