package pivot

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// undo undoes an activation that has not taken over, and leaves a standby.
func (a *activation) undo(ctx context.Context) error {
	a.result.Outcome = "nothing-to-do"
	if a.journal.IsStandby() {
		if err := a.undoAtSource(ctx); err != nil {
			return err
		}
		return forgetNotes(ctx, a.session)
	}
	if a.journal.Phase.Committed() { // whether or not the other management cluster answers
		return a.tookOver()
	}
	step := a.session.Deps.Report.Start("undo the activation")
	var report *handover.Report
	var err error
	if a.handsOver() && !a.journal.Tried() {
		report, err = a.undoHandOver(ctx, step.Detail)
	} else {
		report, err = handover.AbortRestore(ctx, a.session.Side(a.client), handover.Telling(step.Detail))
	}
	if err == nil && report == nil {
		err = a.tookOver()
	}
	if err != nil {
		step.Fail(err)
		if errors.Is(err, handover.ErrLeft) { // the other management cluster works again
			err = errors.Join(err, forgetNotes(ctx, a.session))
		}
		return err
	}
	step.Done()
	a.result.Outcome, a.result.Report = "undone", report
	return forgetNotes(ctx, a.session)
}

// tookOver is the error of an abort after the take-over.
func (a *activation) tookOver() error {
	return diag.Errorf("`"+a.journal.Command()+"` finishes what may be left to do",
		"%s has taken over from %s: this cannot be undone", a.session.Mgmt.Name, a.session.StandbyOf)
}

// undoAtSource removes the fence that a run with --hand-over has left at the other management cluster, while the standby has no journal. A
// run that is killed leaves this before it has written the standby's journal, and an abort after it has removed that journal.
func (a *activation) undoAtSource(ctx context.Context) (err error) {
	a.source, err = a.reachSource(ctx)
	var journal *handover.Journal
	if err == nil {
		journal, err = handover.ReadJournal(ctx, a.source)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.session.Deps.Report.Warn(
			fmt.Sprintf("%s is at rest. An interrupted --hand-over may have left a fence at %s, which could not be asked: %v",
				a.session.Mgmt.Name, a.session.StandbyOf, err))
		return nil
	}
	if !a.handsOverHere(journal) {
		return nil
	}
	step := a.session.Deps.Report.Start("undo the hand-over at " + a.session.StandbyOf)
	report, err := handover.Abort(ctx, a.handOptions(a.client, step.Detail))
	if err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	a.result.Outcome, a.result.Report = "undone", report
	return nil
}

// undoHandOver undoes on both sides what a run with --hand-over has done so far. If the other management cluster is gone for good, it
// undoes the standby's side alone.
func (a *activation) undoHandOver(ctx context.Context, detail func(string)) (report *handover.Report, err error) {
	if a.source, err = a.reachSource(ctx); err == nil {
		return handover.Abort(ctx, a.handOptions(a.client, detail))
	}
	if ctx.Err() != nil || !a.opts.SourceIsGone {
		return nil, diag.Wrap("reach "+a.session.StandbyOf, err, "give this machine access to it: `fleetctl connect --management "+
			a.session.StandbyOf+"`; if it is gone for good: --abort --source-is-gone")
	}
	return handover.AbortWithoutSource(ctx, a.session.Side(a.client), nil, handover.Telling(detail))
}

// forgetUnlessBegun removes the standby's notes after an activation that has failed, if it has not begun: the standby is at rest, and the
// other management cluster is not handing over to it. Otherwise the notes would keep everybody from taking over with the snapshots. The
// same command on another machine may be about to begin: it writes the note once more before it takes over.
func (a *activation) forgetUnlessBegun(ctx context.Context, client *kube.Client) {
	err := session.Late(ctx, func(ctx context.Context) error {
		here, err := handover.ReadJournal(ctx, client)
		if err != nil || !here.IsStandby() {
			return err
		}
		if a.source != nil {
			there, err := handover.ReadJournal(ctx, a.source)
			if err != nil || a.handsOverHere(there) {
				return err
			}
		}
		return forgetNotes(ctx, a.session)
	})
	if err != nil {
		a.session.Deps.Report.Warn(fmt.Sprintf("%s has not taken over, but a note beside the snapshots may still say that it does: "+
			"`fleetctl standby activate %s --abort` removes it %s", a.session.Mgmt.Name, a.session.Mgmt.Name, diag.Because(err)))
	}
}

// handsOverHere tells whether the journal of the other management cluster is of a hand-over to this standby that is under way.
func (a *activation) handsOverHere(j *handover.Journal) bool {
	return j.Active() && j.Activates && j.Role == handover.RoleSource && j.Target.UID == a.session.Waiting
}
