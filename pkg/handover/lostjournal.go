package handover

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// recall replaces the source's journal in memory, if somebody has deleted it, by what the target's journal says of the
// same hand-over. Without this, the source would look as if the hand-over had never begun, and an abort would delete
// the copies of a target that has the work. The first step of the run writes the recalled journal.
//
// No run leaves the source without a journal while the target is in the middle of a hand-over: the source's journal is
// written first, and deleted last.
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

// recallTarget is recall for a target, before an abort. Without this, the copies and the fence at the target would
// stay. tookOver has already settled whether the target has the work. The journal of a standby cannot be made up. If
// the source is fenced, the target had a journal; an earlier abort may have deleted it already.
func (r *run) recallTarget() {
	s := r.source.journal
	if r.target.journal != nil || !s.Active() || s.Role != RoleSource || !s.Phase.reached(PhaseFenced) || s.Activates {
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
