package pivot

import (
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// abortGiven is an abort at a cluster that the user gives, while the source has no journal. The source cannot tell whether the hand-over
// was to that cluster. So the cluster has to show it: by its own journal, or because it is the target that an earlier run has kept.
// Otherwise the abort would forget the way to another target, which may have taken over.
func (p *Move) abortGiven(ctx context.Context, options handover.Options) (*MoveResult, error) {
	given := options.Target
	kept, _, err := p.readTarget(ctx, p.source)
	if err != nil {
		return nil, err
	}
	isKept := false
	if kept != nil {
		if isKept, err = p.isKept(ctx, kept, given.Client); err != nil {
			return nil, diag.Wrap("find out whether "+given.Name+" is "+kept.Name+", to which the work was to be handed over", err,
				"give a kubeconfig of "+kept.Name+"; if it is gone for good: `fleetctl pivot --abort --without-target`")
		}
	}
	journal, err := handover.ReadJournal(ctx, given.Client)
	if err != nil {
		return nil, diag.Wrap("read the journal of "+given.Name, err, diag.Hint(err))
	}
	switch takesPart := p.isTargetOf(journal); {
	case !takesPart && kept != nil && !isKept:
		return nil, diag.Errorf("give a kubeconfig of "+kept.Name+"; if it is gone for good: `fleetctl pivot --abort --without-target`",
			"%s is another cluster than %s, to which the work of %s was to be handed over, and has no journal of it",
			given.Name, kept.Name, p.session.Mgmt.Name)
	case !takesPart:
		if err := handover.CheckFence(ctx, options.Source); err != nil {
			return nil, err
		}
	case kept != nil && !isKept:
		return p.abortOnly(ctx, options, kept.Name)
	}
	return p.abort(ctx, options, handover.Abort)
}

// abortOnly undoes the hand-over to one cluster. It keeps the way to another target, and what the place of the snapshots says of that one.
func (p *Move) abortOnly(ctx context.Context, options handover.Options, kept string) (*MoveResult, error) {
	report, err := p.undo(ctx, options, handover.Abort)
	if err != nil {
		return nil, err
	}
	p.session.Deps.Report.Warn(fmt.Sprintf("the hand-over to %s is undone; another one, to %s, may have begun, too: `fleetctl pivot --abort` "+
		"asks that cluster and undoes it", report.Target, kept))
	return &MoveResult{FormatVersion: "1", Outcome: "undone", Report: report, Next: []string{}}, nil
}

// isKept tells whether a cluster is the kept target. A kept target of an earlier version of fleetctl does not tell its UID, and is asked.
func (p *Move) isKept(ctx context.Context, kept *handedTarget, given *kube.Client) (bool, error) {
	uid, err := handover.ClusterUID(ctx, given)
	if err != nil {
		return false, err
	}
	if kept.UID != "" {
		return uid == kept.UID, nil
	}
	kept, err = p.keptTarget(ctx, p.source)
	if err != nil || kept == nil { // nil: another abort has just forgotten it
		return false, err
	}
	client, err := kube.New(kept.Kubeconfig, kube.Options{})
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	keptUID, err := handover.ClusterUID(ctx, client)
	return uid == keptUID, err
}
