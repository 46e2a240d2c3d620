package pivot

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// keepOnceMore keeps the target and the note that it takes over. An abort on another machine may have forgotten both before the first
// journal was there, which stops such an abort. An abort that has ended since then has forgotten them for good. Nothing else would remove
// what is written after it, so keepOnceMore takes it back.
func (p *Move) keepOnceMore(ctx context.Context, source *kube.Client, target *handedTarget, commit *following.Pushed) error {
	if err := p.undoneMeanwhile(ctx, source, target, commit); err != nil {
		return err
	}
	err := p.keepTarget(ctx, source, target)
	if err == nil {
		err = markHandedOver(ctx, commit, target.Name, true)
	}
	if err != nil {
		return err
	}
	return p.undoneMeanwhile(ctx, source, target, commit)
}

// undoneMeanwhile returns an error if an abort on another machine undoes the hand-over to the target, or has undone it. In the second case
// it first takes back what a run keeps for the time after the commit. An abort that still has its journal does this itself.
func (p *Move) undoneMeanwhile(ctx context.Context, source *kube.Client, target *handedTarget, commit *following.Pushed) error {
	journal, err := handover.ReadJournal(ctx, source)
	if err != nil {
		return err
	}
	if journal != nil && journal.Role == handover.RoleSource && journal.Target.UID == target.UID && journal.Phase.Committed() {
		return handover.ErrOvertaken // by the same command on another machine, which needs what is kept
	}
	if journal.Active() && journal.Role == handover.RoleSource && journal.Target.UID == target.UID {
		if journal.Phase != handover.PhaseAborting {
			return nil
		}
	} else if err := p.takeBack(ctx, source, target, commit); err != nil {
		return diag.Wrap("take back the note that "+target.Name+" takes over", err, "`fleetctl pivot --abort` removes it")
	}
	return diag.Errorf("run the same command again to hand the work over after all",
		"the hand-over from %s to %s was undone meanwhile by `fleetctl pivot --abort`: nothing was handed over",
		p.session.Mgmt.Name, target.Name)
}

// takeBackUnlessBegun is takeBack after a hand-over that has failed, if neither side has a journal of it. Otherwise the note would keep
// everybody from restoring a snapshot, if the source is lost. A side that does not answer may have a journal. The same command on another
// machine may be about to write its first one: it keeps both once more before its commit.
func (p *Move) takeBackUnlessBegun(ctx context.Context, source *kube.Client, target *Target, commit *following.Pushed) {
	err := session.Late(ctx, func(ctx context.Context) error {
		here, err := handover.ReadJournal(ctx, source)
		if err != nil || here.Active() || here != nil && here.Role == handover.RoleSource && here.Whole() {
			return err
		}
		there, err := handover.ReadJournal(ctx, target.client)
		if err != nil || p.isTargetOf(there) {
			return err
		}
		return p.takeBack(ctx, source, target.handedTarget, commit)
	})
	if err != nil {
		p.session.Deps.Report.Warn(fmt.Sprintf("nothing was handed over, but a note beside the snapshots may still say that %s takes over: "+
			"`fleetctl pivot --abort` removes it %s", target.Name, diag.Because(err)))
	}
}

// takeBack removes the note that the target takes over from the place of the snapshots, and the kept target.
func (p *Move) takeBack(ctx context.Context, source *kube.Client, target *handedTarget, commit *following.Pushed) error {
	return errors.Join(p.takeBackNote(ctx, target, commit), p.takeBackTarget(ctx, source, target))
}

func (p *Move) takeBackNote(ctx context.Context, target *handedTarget, commit *following.Pushed) error {
	if p.session.SnapshotsTo() == "" {
		return nil
	}
	place, err := p.session.Place()
	if err != nil {
		return err
	}
	keys, err := SealingKeys(commit)
	if err != nil {
		return err
	}
	return removeNotesIn(ctx, place, keys, p.session.Identity(), func(note *snapshot.Snapshot) bool {
		return note.HandedOverUID == "" && note.HandedOver == target.Name
	}, nil)
}

// takeBackTarget leaves the target of another hand-over, which may have begun meanwhile.
func (p *Move) takeBackTarget(ctx context.Context, source *kube.Client, target *handedTarget) error {
	raw, err := source.SecretValue(ctx, targetSecret, "target")
	if err != nil && !kube.IsAbsent(err) {
		return err
	}
	if there := decodeKept(raw); there != nil && there.UID != target.UID {
		return removeKept(p.session.Cluster)
	}
	return p.forgetTarget(ctx, source)
}

// checkAndNote returns the check before the commit of an activation. It tries what Flux would do, and notes the take-over once more: before
// the first journal was there, somebody may have taken a snapshot, or an abort on another machine may have removed the note. After an abort
// that has ended since then, nothing else would remove the new note, so the check takes it back.
func (a *activation) checkAndNote(commit *following.Pushed, m *resolve.Manifests) func(context.Context, *kube.Client) error {
	tries := a.tries(commit.View(m.Flux))
	return func(ctx context.Context, at *kube.Client) error {
		if err := tries(ctx, at); err != nil {
			return err
		}
		if err := a.markHistory(ctx, commit); err != nil {
			return err
		}
		journal, err := handover.ReadJournal(ctx, at)
		if err != nil || !journal.IsStandby() {
			return err
		}
		if err := forgetNotes(ctx, a.session); err != nil {
			return err
		}
		return diag.Errorf("run the same command again to take over after all",
			"the activation of %s was undone meanwhile by `%s --abort`: it has not taken over", a.session.Mgmt.Name, journal.Command())
	}
}
