package pivot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepTakeOver = "take over"
	stepDeclare  = "declare it in fleet.yaml"
)

// answerTime bounds the wait for an answer of the management cluster that a standby takes over from.
const answerTime = 15 * time.Second

// ActivateOptions are the options of ActivateStandby.
type ActivateOptions struct {
	session.Options
	// From, Snapshot, SourceIsGone, PauseElsewhere: see RestoreOptions.
	From, Snapshot               string
	SourceIsGone, PauseElsewhere bool
	// AcceptDeletions: see RestoreOptions.
	AcceptDeletions bool
	// HandOver takes the work from a management cluster that runs, without a snapshot.
	HandOver bool
	// DryRun changes nothing. Abort undoes an activation that has not taken over.
	DryRun, Abort bool
}

// ActivateResult is what ActivateStandby did, or what it would do.
type ActivateResult struct {
	FormatVersion string `json:"formatVersion"`
	// Outcome is activated, planned, undone or nothing-to-do.
	Outcome string `json:"outcome"`
	Cluster string `json:"cluster"`
	Of      string `json:"of"`
	// Snapshot is the snapshot that the standby takes over with. It is nil for a hand-over from a management cluster that runs; Plan then says
	// what the hand-over would do.
	Snapshot   *SnapshotInfo    `json:"snapshot,omitempty"`
	Plan       *handover.Plan   `json:"plan,omitempty"`
	Report     *handover.Report `json:"report,omitempty"`
	Revision   string           `json:"revision,omitempty"`
	Kubeconfig string           `json:"kubeconfig,omitempty"`
	Next       []string         `json:"next"`
}

// activation makes a standby take over. It runs the steps of init on the standby, and restores a snapshot or hands the work over before
// Flux is connected.
type activation struct {
	*Restoration
	opts    ActivateOptions
	client  *kube.Client
	journal *handover.Journal
	source  *kube.Client // of the management cluster that hands over; nil for a snapshot, or if that cluster is gone
	result  *ActivateResult
}

// ActivateStandby makes a standby take over from its management cluster. If that management cluster is gone, the standby takes over with
// the last snapshot. If it runs, and o.HandOver is set, it hands its work over. ActivateStandby continues an earlier run that was
// interrupted, and has nothing to do after one that ended.
func ActivateStandby(ctx context.Context, deps management.Deps, o ActivateOptions) (*ActivateResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, done, err := session.OpenAlone(ctx, deps, o.Options, "fleetctl standby activate")
	if err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	defer done()
	if over := tookOverBefore(ctx, s); over != nil && !o.Abort {
		return over, nil
	}
	client, journal, err := lookStandby(ctx, s)
	if err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	a := &activation{Restoration: NewRestoration(converge.NewRun(s)), opts: o, client: client, journal: journal, result: &ActivateResult{
		FormatVersion: "1", Outcome: "planned", Cluster: s.Mgmt.Name, Of: s.StandbyOf, Next: []string{},
	}}
	a.AcceptDeletions = o.AcceptDeletions
	if o.Abort {
		return a.result, a.undo(ctx)
	}
	if err := a.settle(ctx); err != nil || o.DryRun {
		return a.result, err
	}
	a.init.GoesOn = true
	a.init.Held = func(context.Context, *kube.Client) (bool, error) { return true, nil } // init must not start the stopped controllers
	if err := steps.Run(ctx, deps.Report, a.steps()); err != nil {
		return nil, err
	}
	a.result.Outcome, a.result.Kubeconfig = "activated", s.Cluster.Path(management.KubeconfigFile)
	a.result.Report, _ = a.report.Peek()
	a.result.Next = append(a.result.Next,
		"fleetctl status --management "+s.Mgmt.Name+"     # the clusters, and what is wrong",
		"fleetctl backup --management "+s.Mgmt.Name+"     # the snapshots of "+s.StandbyOf+" can no longer be restored",
		"fleetctl host delete --management "+s.StandbyOf+"    # its host, before anybody starts it again")
	return a.result, nil
}

// handsOver tells whether the other management cluster hands its work over, without a snapshot. If an earlier run has written a journal,
// the journal decides; otherwise the options do.
func (a *activation) handsOver() bool {
	if a.journal.IsStandby() || a.journal.Tried() {
		return a.opts.HandOver
	}
	return a.journal.Snapshot == ""
}

// settle finds the snapshot to take over with, and returns an error if the activation may not begin.
func (a *activation) settle(ctx context.Context) error {
	if a.handsOver() {
		return a.settleSource(ctx)
	}
	if !a.journal.IsStandby() && !a.journal.Tried() {
		return a.settleUnderWay(ctx)
	}
	silent, err := a.refuseLiving(ctx)
	if err != nil {
		return err
	}
	if err := a.findIt(ctx, a.opts.Snapshot); err != nil {
		return err
	}
	if a.Snap.HandedOver != "" {
		return refuseHandedOverSince(a.session.StandbyOf, a.Snap)
	}
	if err := a.refuseOlder(); err != nil {
		return err
	}
	a.pauseElsewhere = a.opts.PauseElsewhere
	if err := a.checkOwners(ctx); err != nil {
		return err
	}
	if a.opts.SourceIsGone || a.opts.DryRun {
		return nil
	}
	return diag.Errorf("if it is gone, add --source-is-gone. If it is not gone, two management clusters would act on the same machines",
		"the management cluster %s does not answer this machine, but may still run (%v); the snapshot was taken %s, by %s",
		a.session.StandbyOf, silent, plain.Ago(a.Snap.Taken), a.Snap.By)
}

// refuseLiving returns err if the other management cluster answers, because the standby must not take over with a snapshot then. silent
// says why fleetctl could not ask it.
func (a *activation) refuseLiving(ctx context.Context) (silent, err error) {
	alive, silent := a.reachSource(ctx)
	if silent == nil {
		return nil, diag.Errorf(
			"add --hand-over, and it hands its work over; or, to take over with a snapshot, end it first (`fleetctl host delete --management "+
				a.session.StandbyOf+"`)",
			"the management cluster %s answers at %s: it and the standby would act on the same machines", a.session.StandbyOf, alive.Host())
	}
	if ctx.Err() != nil {
		return nil, silent
	}
	if a.opts.SourceIsGone || a.opts.DryRun { // else the error of the caller says it
		a.session.Deps.Report.Warn(fmt.Sprintf("assuming that %s is gone: it did not answer this machine (%v)", a.session.StandbyOf, silent))
	}
	return silent, nil
}

// refuseOlder returns an error if the newest snapshot is older than the one that the standby tried last, unless the user has named the
// snapshot. It is older if somebody has rolled the place back, or if the place is another one.
func (a *activation) refuseOlder() error {
	standby := a.journal.Standby
	if before := a.journal.Before; standby == nil && before != nil { // the journal of an interrupted try
		standby = before.Standby
	}
	if a.opts.Snapshot != "" || standby == nil || standby.Seen == nil || standby.Seen.Snapshot <= a.Snap.ID {
		return nil
	}
	return diag.Errorf("find out where the newer snapshot is. To take over with the older one anyway: --snapshot "+a.Snap.ID,
		"the newest snapshot is %s, but %s has already tried a newer one, %s", a.Snap.ID, a.session.Mgmt.Name, standby.Seen.Snapshot)
}

// findIt reads the snapshot with this ID; an empty id means the newest one.
func (a *activation) findIt(ctx context.Context, id string) error {
	place, err := a.session.OpenPlace(a.opts.From)
	if err != nil {
		return err
	}
	if a.Snap, err = FindSnapshot(ctx, a.session, place, id); err != nil {
		return err
	}
	a.result.Snapshot = infoOf(a.Snap)
	return nil
}

// settleUnderWay continues with the snapshot of an earlier run, and checks everything that may have changed since. After the take-over it
// needs no snapshot.
func (a *activation) settleUnderWay(ctx context.Context) error {
	if a.journal.Phase.Committed() {
		a.Snap = &snapshot.Snapshot{
			ID: a.journal.Snapshot, Fleet: a.journal.Fleet, ManagementCluster: a.journal.Source.Name,
			UID: a.journal.Source.UID,
		}
		return nil
	}
	if _, err := a.refuseLiving(ctx); err != nil {
		return err
	}
	if err := a.findIt(ctx, a.journal.Snapshot); err != nil {
		return err
	}
	return a.checkOwnersAgain(ctx, a.journal)
}

// reachSource connects to the management cluster that the standby takes over from. It returns an error if this machine has no access to it,
// or if it does not answer.
func (a *activation) reachSource(ctx context.Context) (*kube.Client, error) {
	return reachNamed(ctx, a.session, a.session.StandbyOf)
}

// settleSource is settle for a management cluster that runs, or that ran when an earlier run began.
func (a *activation) settleSource(ctx context.Context) (err error) {
	a.source, err = a.reachSource(ctx)
	if err != nil && a.journal.Activates && a.journal.Phase.Committed() {
		a.session.Deps.Report.Warn("the fence and the old objects at " + a.session.StandbyOf + " stay there, because it does not answer")
		return nil
	}
	if err != nil {
		return diag.Wrap("reach "+a.session.StandbyOf, err,
			"give this machine access to it: `fleetctl connect --management "+a.session.StandbyOf+
				"`; if it is gone for good: undo the hand-over (--abort --source-is-gone), then --source-is-gone "+
				"without --hand-over")
	}
	if a.journal.Tried() && a.opts.DryRun { // a dry run must not undo the try
		return diag.NotReady("`fleetctl standby refresh "+a.session.Mgmt.Name+
			"` removes what is left of the try; so does the same command without --dry-run",
			"a try of the snapshot %s on %s was interrupted, or is still running: fleetctl cannot plan while its copies exist",
			a.journal.Snapshot, a.session.Mgmt.Name)
	}
	if a.journal.Tried() { // a try has no result that anybody needs
		if err := handover.AbortTry(ctx, a.session.Side(a.client)); err != nil {
			return err
		}
	}
	if a.opts.DryRun {
		a.result.Plan, err = handover.Look(ctx, a.handOptions(a.client, nil))
	}
	return err
}

func (a *activation) handOptions(client *kube.Client, detail func(string)) handover.Options {
	o := handover.Options{
		Fleet: a.session.Identity(), Source: handover.Side{Name: a.session.StandbyOf, Client: a.source}, Target: a.session.Side(client),
	}
	o.Progress = handover.Telling(detail)
	return o
}

// takeOverOptions returns the options of a hand-over from a management cluster that lives.
func (a *activation) takeOverOptions(
	client *kube.Client, commit *following.Pushed, m *resolve.Manifests, detail func(string),
) handover.Options {
	o := a.handOptions(client, detail)
	o.Attach = commit.TakeUp
	o.Check = a.checkAndNote(commit, m)
	return o
}

// steps returns the steps of init, with a step that gives the standby the work before Flux is connected, and with last steps that change
// the fleet repo. Until the last step is done, the same command continues an interrupted run.
func (a *activation) steps() []steps.Step {
	all := a.init.StepsAround(steps.Step{
		Name: stepTakeOver, Needs: []string{converge.StepPush, converge.StepFlux, converge.StepProviders},
		Work:    steps.Make3(a.report, a.takeOver, a.init.Client, a.init.Pushed, a.init.Manifests),
		Timeout: time.Hour,
		Hint: "run the same command again to continue; until the take-over, `fleetctl standby activate " + a.session.Mgmt.Name +
			" --abort` undoes it",
	})
	return append(all, steps.Step{
		Name: StepAsBefore, Needs: []string{converge.StepSynced}, Work: steps.Do2(a.waitAsBefore, a.init.Client, a.report),
		Timeout: 15 * time.Minute,
		Hint:    "it has taken over; `fleetctl status --management " + a.session.Mgmt.Name + "` shows what is wrong",
	}, steps.Step{
		Name: stepDeclare, Needs: []string{stepTakeOver, converge.StepConnect},
		Work:    steps.Do3(a.declare, a.init.Client, a.init.Pushed, a.init.Endpoint),
		Timeout: 5 * time.Minute,
		Hint:    "it has taken over; run the same command again, or change fleet.yaml by hand: `fleetctl standby activate --help` says how",
	})
}

// takeOver gives the standby the work. Before the commit, it writes a note to the place of the snapshots, so that nobody else takes over
// with them. A run that is killed right after the commit could not write the note.
func (a *activation) takeOver(
	ctx context.Context,
	client *kube.Client,
	commit *following.Pushed,
	m *resolve.Manifests,
	detail func(string),
) (report *handover.Report, err error) {
	if err := a.markHistory(ctx, commit); err != nil {
		return nil, err
	}
	if a.handsOver() {
		report, err = handover.Run(ctx, a.takeOverOptions(client, commit, m, detail))
	} else {
		o := a.options(client, commit.TakeUp, detail)
		o.Check = a.checkAndNote(commit, m)
		report, err = handover.Restore(ctx, o)
	}
	warn(a.session, report)
	a.init.Did()
	if err != nil {
		a.forgetUnlessBegun(ctx, client)
	}
	return report, err
}

// declare records the take-over in Git and on this machine. A second call changes nothing.
func (a *activation) declare(
	ctx context.Context, client *kube.Client, commit *following.Pushed, endpoint *repoaccess.Endpoint, detail func(string),
) error {
	s := a.session
	if err := a.remember(); err != nil {
		return err
	}
	p := &following.Pushed{Session: s, Access: commit.Access, Repo: commit.Repo}
	message := s.Mgmt.Name + " takes over from " + s.StandbyOf + "\n\nWritten by fleetctl standby activate.\n"
	made, nothing, err := converge.CommitTo(ctx, s, endpoint, p, message, func(ctx context.Context, root string) ([]gitrepo.Change, error) {
		repo, err := fleetrepo.Open(root)
		if err != nil {
			return nil, err
		}
		edit, err := repo.ActivateStandby(s.Mgmt.Name, s.StandbyOf)
		if err != nil {
			return nil, err
		}
		changes, err := standing.Identity(ctx, s, client, root, true)
		if err != nil {
			return nil, err
		}
		for _, f := range edit.Changes.Files() {
			changes = append(changes, gitrepo.Change{Path: f.Path, Content: f.Content, Replace: true})
		}
		return changes, nil
	}, detail)
	a.result.Revision = p.Revision
	if err == nil && !made {
		return nothing
	}
	return err
}

// remember notes in this machine's record of the other management cluster that it has handed its work over, as a pivot does. Commands on
// this machine then no longer use that cluster.
func (a *activation) remember() error {
	other := a.session.Deps.Store.Cluster(a.session.StandbyOf)
	if _, err := other.Load(); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := other.Lock("fleetctl standby activate")
	if err != nil {
		return err
	}
	defer unlock()
	record, err := other.Load()
	if err != nil {
		return err
	}
	kubeconfig, _ := a.init.Kubeconfig.Peek()
	if err := kube.WriteKubeconfig(other.Path(management.KubeconfigFile), kubeconfig); err != nil {
		return err
	}
	record.PivotedTo = a.session.Mgmt.Name
	return other.Save(*record)
}
