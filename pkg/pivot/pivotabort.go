package pivot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// abortAtTarget undoes, at the target, a hand-over whose source is gone for good. It removes the copies, the fence, and the note about the
// take-over in the place of the snapshots. Afterwards a snapshot of the source can be restored, also at that target.
func (p *Move) abortAtTarget(ctx context.Context) (*MoveResult, error) {
	way, err := p.wayToTarget()
	if err != nil {
		return nil, err
	}
	if err := p.refuseLivingSource(ctx); err != nil {
		return nil, err
	}
	client, err := kube.New(way.Kubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return nil, diag.Wrap("look at "+way.Name, err, "if it is gone too, there is nothing to undo: `fleetctl restore --source-is-gone`")
	}
	if err := p.refuseOtherHandOver(way.Name, journal); err != nil {
		return nil, err
	}
	if !journal.Active() {
		return p.forgetUnbegun(ctx, way, client, journal)
	}
	step := p.session.Deps.Report.Start("undo the hand-over at " + way.Name)
	settled := func(ctx context.Context) error { return forgetHandOver(ctx, p.session, journal.Target.Name) }
	side := handover.Side{Name: way.Name, Client: client}
	report, err := handover.AbortWithoutSource(ctx, side, settled, handover.Telling(step.Detail))
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	tellGiven(ctx, client, way.Name, p.session.Deps.Report.Warn)
	return &MoveResult{
		FormatVersion: "1", Outcome: "undone", Report: report, Next: p.restoreNext(),
	}, removeKept(p.session.Cluster)
}

func (p *Move) restoreNext() []string {
	return []string{"fleetctl restore --source-is-gone    # makes a management cluster from the last snapshot of " + p.session.Mgmt.Name}
}

// wayToTarget returns the target with the kubeconfig that the user gave, or that this machine has kept.
func (p *Move) wayToTarget() (*handedTarget, error) {
	if len(p.toKubeconfig) > 0 {
		return &handedTarget{Name: p.to, Kubeconfig: p.toKubeconfig}, nil
	}
	kept, err := readKept(p.session.Cluster)
	if err == nil && kept == nil {
		err = diag.Usage("give it: --to-kubeconfig FILE", "this machine knows no way to the target of a hand-over from %s", p.session.Mgmt.Name)
	}
	return kept, err
}

// refuseLivingSource returns an error if the source still runs: then it could continue a hand-over that is undone at the target alone.
func (p *Move) refuseLivingSource(ctx context.Context) error {
	name := p.session.Mgmt.Name
	if p.session.HostErr == nil {
		switch st, err := p.session.Host.State(ctx); {
		case err != nil:
		case st == host.StateStopped:
			return diag.Errorf("start it (`fleetctl host start`), and then undo the hand-over on both sides (`fleetctl pivot --abort`)",
				"%s is not gone: its host on this machine is stopped", name)
		case st == host.StateRunning:
			return diag.Errorf("`fleetctl pivot --abort` undoes the hand-over on both sides", "%s is not gone: its host runs on this machine", name)
		}
	}
	alive, silent := reachNamed(ctx, p.session, name)
	if silent == nil {
		return diag.Errorf("`fleetctl pivot --abort` undoes the hand-over on both sides", "%s is not gone: it answers at %s", name, alive.Host())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.session.Deps.Report.Warn(fmt.Sprintf("assuming that %s is gone, as you say: it did not answer this machine (%v)", name, silent))
	return nil
}

// refuseOtherHandOver returns an error if the target's journal has a hand-over from this source that is committed, or if the target is in
// the middle of anything else.
func (p *Move) refuseOtherHandOver(target string, j *handover.Journal) error {
	switch {
	case j == nil:
		return nil
	case j.Active() && (j.Fleet != p.session.Identity() || j.Source.Name != p.session.Mgmt.Name):
		return otherFleets(target, j, p.session.Mgmt.Name)
	case p.isTargetOf(j) && j.Phase.Committed():
		return diag.Errorf("run `fleetctl pivot`, which finishes the hand-over", "%s has taken over from %s: this cannot be undone",
			target, p.session.Mgmt.Name)
	case j.Active() && (j.Role != handover.RoleTarget || !j.Whole() || j.Snapshot != "" || j.Around || j.Activates):
		return handover.InTheMiddle(target, j)
	}
	return nil
}

// forgetHandOver removes the note that the target takes over from the place of the snapshots.
func forgetHandOver(ctx context.Context, s *session.Session, target string) error {
	return forgetNotesTo(ctx, s, target, func(name string) bool { return name == target })
}

// forgetNotesTo is forgetHandOver for all notes that name a target which is has. An error names target.
func forgetNotesTo(ctx context.Context, s *session.Session, target string, is func(name string) bool) error {
	place, keys, err := openHistory(s)
	if err == nil && place != nil {
		err = removeNotesIn(ctx, place, keys, s.Identity(), func(note *snapshot.Snapshot) bool {
			return note.HandedOverUID == "" && is(note.HandedOver)
		}, s.Deps.Report.Warn)
	}
	return diag.Wrap("remove the note that "+target+" takes over from the place of the snapshots", err,
		"run the same command again: with the note, no snapshot there can be restored")
}

// openHistory returns the place of the snapshots, and the keys of this machine. The place is nil if the fleet repo names none.
func openHistory(s *session.Session) (snapshot.Place, secret.Keys, error) {
	if s.SnapshotsTo() == "" {
		return nil, nil, nil
	}
	place, err := s.Place()
	if err != nil {
		return nil, nil, err
	}
	keys, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	return place, keys, err
}

// reachNamed connects to a management cluster by name. It returns an error if this machine has no access to it, or if it does not answer.
func reachNamed(ctx context.Context, s *session.Session, name string) (*kube.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	target, err := management.Find(s.Deps.Store, name, s.Opts.Dir)
	if err != nil {
		return nil, err
	}
	client, err := target.Client(ctx)
	if err != nil {
		return nil, err
	}
	_, err = client.ServerVersion(ctx)
	return client, err
}

// settleAbort does what an abort has to do once no journal names the hand-over any more. The kept target goes last, because it tells a
// later run that an abort was cut off before.
func (p *Move) settleAbort(ctx context.Context, target string) error {
	err := p.snapshotAgain(ctx)
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if err != nil && p.forgetNote(ctx, target) != nil {
		p.session.Deps.Report.Warn(fmt.Sprintf(
			"the hand-over is undone, but a note beside the snapshots may still say that %s has taken over, until the next snapshot "+
				"(`fleetctl backup`): %s", target, diag.InLine(err)))
	}
	return p.forgetTarget(ctx, p.source)
}

// forgetNote is forgetHandOver for a place that may not answer.
func (p *Move) forgetNote(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return forgetHandOver(ctx, p.session, target)
}

// forgetBegun is an abort without a journal. An earlier run was cut off either before it wrote the first one, or after its abort had
// removed them. Only the kept target tells this. The target's journal says whether it has taken over, in case that somebody has deleted
// the journal of the source. So a target that cannot be asked stops the abort, unless the user says that it is gone.
func (p *Move) forgetBegun(ctx context.Context, o MoveOptions) (*MoveResult, error) {
	result := &MoveResult{FormatVersion: "1", Outcome: "nothing-to-do", Next: []string{}}
	kept, err := p.keptTarget(ctx, p.source)
	if err != nil || kept == nil {
		return result, err
	}
	client, journal, err := askTarget(ctx, kept)
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(err, context.Cause(ctx))
	case err == nil && p.isTargetOf(journal) && journal.Phase == handover.PhaseAborting: // an earlier abort could not clear it up
		return p.abort(ctx, handover.Options{
			Fleet: p.session.Identity(), Source: handover.Side{Name: p.session.Mgmt.Name, Client: p.source},
			Target: handover.Side{Name: kept.Name, Client: client},
		}, handover.Abort)
	case err == nil && p.isTargetOf(journal):
		return nil, diag.Errorf("name the target, whose journal tells what has to be done: `fleetctl pivot --abort --to-kubeconfig FILE`",
			"%s has a journal of a hand-over from %s, which has none", kept.Name, p.session.Mgmt.Name)
	case err != nil && !o.WithoutTarget:
		return nil, diag.Wrap("ask "+kept.Name+" whether it has taken over", err, "this machine must be able to ask it; with another "+
			"kubeconfig of it: `fleetctl pivot --abort --to-kubeconfig FILE`; if it is gone for good: `fleetctl pivot --abort --without-target`")
	case err != nil:
		p.session.Deps.Report.Warn(fmt.Sprintf("assuming that %s is gone, as you say, and has not taken over: %v", kept.Name, err))
	}
	step := p.session.Deps.Report.Start("forget the hand-over to " + kept.Name)
	if err := p.settleAbort(ctx, kept.Name); err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	if client != nil {
		tellGiven(ctx, client, kept.Name, p.session.Deps.Report.Warn)
	}
	result.Outcome, result.Report = "undone", p.unbegun(kept.Name)
	return result, nil
}

// askTarget reads the journal of a target. It returns a client only if the target answered.
func askTarget(ctx context.Context, target *handedTarget) (*kube.Client, *handover.Journal, error) {
	client, err := kube.New(target.Kubeconfig, kube.Options{})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	return client, journal, nil
}

// isTargetOf tells whether the journal is that of a target that takes over, or has taken over, all work of this management cluster.
func (p *Move) isTargetOf(j *handover.Journal) bool {
	return j != nil && j.Role == handover.RoleTarget && j.Whole() && j.Snapshot == "" && !j.Around &&
		j.Fleet == p.session.Identity() && j.Source.Name == p.session.Mgmt.Name
}

// snapshotAgainTime bounds the snapshot after an abort: a place that does not answer must not keep the abort from its end.
const snapshotAgainTime = 2 * time.Minute

// snapshotAgain takes a snapshot of a management cluster that keeps its work after an abort. The snapshot replaces the note that the work
// was handed over.
func (p *Move) snapshotAgain(ctx context.Context) error {
	if p.session.SnapshotsTo() == "" {
		return nil
	}
	bound := snapshotAgainTime
	if end, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	_, err := Backup(ctx, p.session.Deps, BackupOptions{
		Target: &management.Target{Name: p.session.Mgmt.Name, Cluster: p.session.Cluster}, Client: p.source, Dir: p.session.Opts.Dir,
		To:  p.session.SnapshotsTo(),
		Git: p.session.Opts.Git, AgeKeyFile: p.session.Opts.AgeKeyFile,
	})
	return err
}
