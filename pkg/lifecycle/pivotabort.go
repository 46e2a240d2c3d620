package lifecycle

import (
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// abortAtTarget undoes at the target what a source has begun there that is gone for good: the copies and the fence go, and the place of the snapshots no
// longer says that the target takes over. What the source had can be restored then, at that target, too.
func (p *pivot) abortAtTarget(ctx context.Context) (*PivotResult, error) {
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
		return nil, diag.Wrap("look at "+way.Name, err, "if it is gone, too, nothing is to be undone: `fleetctl restore --source-is-gone`")
	}
	if err := p.refuseOtherHandOver(way.Name, journal); err != nil {
		return nil, err
	}
	if !journal.Active() {
		return &PivotResult{FormatVersion: "1", Outcome: "nothing-to-do", Next: []string{}}, removeKept(p.session.cluster)
	}
	step := p.session.deps.Report.Start("undo the hand-over at " + way.Name)
	report, err := handover.AbortWithoutSource(ctx, handover.Side{Name: way.Name, Client: client}, func(ctx context.Context) error {
		return p.session.forgetHandOver(ctx, journal.Target.Name)
	})
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	return &PivotResult{
		FormatVersion: "1", Outcome: "undone", Report: report,
		Next: []string{"fleetctl restore --source-is-gone    # makes a management cluster with what the last snapshot of " + p.session.mgmt.Name + " holds"},
	}, removeKept(p.session.cluster)
}

// wayToTarget is the one that the user gave, or that this machine has kept.
func (p *pivot) wayToTarget() (*handedTarget, error) {
	if len(p.toKubeconfig) > 0 {
		return &handedTarget{Name: p.to, Kubeconfig: p.toKubeconfig}, nil
	}
	kept, err := readKept(p.session.cluster)
	if err == nil && kept == nil {
		err = diag.Usage("give it: --to-kubeconfig FILE", "this machine knows no way to the target of a hand-over from %s", p.session.mgmt.Name)
	}
	return kept, err
}

// refuseLivingSource refuses to undo at the target alone what the source can still go on with.
func (p *pivot) refuseLivingSource(ctx context.Context) error {
	name := p.session.mgmt.Name
	if p.session.hostErr == nil {
		switch st, err := p.session.host.State(ctx); {
		case err != nil:
		case st == host.StateStopped:
			return diag.Errorf("start it (`fleetctl host start`); `fleetctl pivot --abort` undoes the hand-over on both sides then", "%s is not gone: its host on this machine is stopped", name)
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
	p.session.deps.Report.Warn(fmt.Sprintf("%s is taken for gone: asked from here, it did not answer (%v)", name, silent))
	return nil
}

// refuseOtherHandOver refuses a target whose journal tells of anything but a hand-over from this source that is not committed.
func (p *pivot) refuseOtherHandOver(target string, j *handover.Journal) error {
	switch {
	case j == nil:
		return nil
	case j.Fleet != p.session.identity() || j.Source.Name != p.session.mgmt.Name:
		return otherFleets(target, j, p.session.mgmt.Name)
	case j.Role == handover.RoleTarget && j.Phase.Committed() && j.Whole() && j.Snapshot == "" && !j.Around:
		return diag.Errorf("`fleetctl pivot` finishes what may be left to do", "%s has taken over from %s: it can only go forward", target, p.session.mgmt.Name)
	case j.Active() && (j.Role != handover.RoleTarget || !j.Whole() || j.Snapshot != "" || j.Around || j.Activates):
		return handover.InTheMiddle(target, j)
	}
	return nil
}

// forgetHandOver removes from the place of the snapshots that a management cluster takes over which never will.
func (s *session) forgetHandOver(ctx context.Context, target string) error {
	if s.snapshotsTo() == "" {
		return nil
	}
	place, err := s.place()
	if err != nil {
		return err
	}
	keys, err := fleetsecrets.LocalKeys(s.deps, s.stateFleet(), s.opts.Dir, s.opts.AgeKeyFile)
	if err == nil {
		err = removeNotesIn(ctx, place, keys, func(note *snapshot.Snapshot) bool { return note.HandedOverUID == "" && note.HandedOver == target })
	}
	return diag.Wrap("remove from the place of the snapshots that "+target+" takes over", err, "run the same command again: until then nothing can be restored from there")
}

// reachNamed is a way to a management cluster, where this machine knows one and it answers.
func reachNamed(ctx context.Context, s *session, name string) (*kube.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	target, err := management.Find(s.deps.Store, name, s.opts.Dir)
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

// snapshotAgain takes a snapshot of a management cluster that keeps its work after all: it counts in the place of the note that the work was handed over.
func (p *pivot) snapshotAgain(ctx context.Context) error {
	if p.session.snapshotsTo() == "" {
		return nil
	}
	_, err := Backup(ctx, p.session.deps, BackupOptions{
		Target: &management.Target{Name: p.session.mgmt.Name, Cluster: p.session.cluster}, Client: p.source, Dir: p.session.opts.Dir, To: p.session.snapshotsTo(),
		Git: p.session.opts.Git, AgeKeyFile: p.session.opts.AgeKeyFile,
	})
	return err
}
