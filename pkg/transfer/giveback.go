package transfer

import (
	"context"
	"errors"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// giveBackTime bounds giveBack, which also runs after an interruption.
const giveBackTime = 10 * time.Second

// giveBack returns err, the error of a run that has stopped the source's Flux. If the hand-over has not begun, giveBack lets the source's
// Flux apply the cluster again, because nobody else would: no journal says that there is something to undo. If it cannot tell, or if
// another hand-over of the source is under way, the hint has the command that does it.
func (t *transfer) giveBack(ctx context.Context, err error) error {
	again := t.journal != nil && t.journal.Phase == handover.PhaseAborting // handover.Run first finishes the abort, and begins anew
	if err == nil || t.journal != nil && !again || t.over || t.from.client == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	here, failed := handover.ReadJournal(ctx, t.from.client)
	there, unheard := handover.ReadJournal(ctx, t.to.client)
	failed = errors.Join(failed, unheard)
	if t.begun(here, t.here) || t.begun(there, t.there) {
		return err
	}
	if failed == nil && !here.Active() {
		failed = flux.NewSystem(t.from.client).TakeBack(ctx, t.key.Namespace, capi.KubeconfigSecret(t.key))
		if failed == nil {
			return err
		}
	}
	return diag.AndHint(err, "`"+diag.ShellCommand("fleetctl", "cluster", "transfer", t.name, "--to", t.to.target.Name, "--abort")+
		"` resumes its Flux at "+t.from.target.Name)
}

// begun tells whether a transfer of the cluster has begun since the journal was before.
func (t *transfer) begun(journal, before *handover.Journal) bool {
	return journal != nil && journal.IsTransferOf(t.name) && journal.Begun(before)
}

// quietAgain stops the source's Flux once more, before the target takes over: a run on another machine that has failed before the first
// journal may have given it back.
func (t *transfer) quietAgain(ctx context.Context) error {
	release := t.release
	if release.Name == "" { // this run continues another one, and has not read the name
		manager, err := capi.New(t.from.client)
		if err != nil {
			return err
		}
		object, err := manager.ClusterObject(ctx, t.key)
		if err != nil {
			return err
		}
		release = flux.ReleaseOf(object)
	}
	_, err := flux.NewSystem(t.from.client).LetGo(ctx, release, capi.KubeconfigSecret(t.key))
	return err
}
