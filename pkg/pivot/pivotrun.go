package pivot

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// targetName returns a name for a cluster of which fleetctl knows only a kubeconfig. It is the name of the kubeconfig's file, or the name
// in the kubeconfig if the file has a name like "config".
func targetName(path string, kubeconfig []byte) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if slices.Contains([]string{"", "config", "kubeconfig"}, name) {
		return cmp.Or(kube.ClusterName(kubeconfig), filepath.Base(path))
	}
	return name
}

// MoveOptions are the options of Pivot.
type MoveOptions struct {
	session.Options
	// To is a workload cluster of the source, NAME or NAMESPACE/NAME. ToKubeconfig is a kubeconfig of any other cluster.
	To, ToKubeconfig string
	// Abort undoes a hand-over that is not committed. With WithoutTarget, Abort undoes it at the source alone. DryRun changes nothing.
	Abort, WithoutTarget, DryRun bool
	// SourceIsGone is the user's word that the source no longer runs. Abort then undoes the hand-over at the target alone.
	SourceIsGone bool
	// KeepCredentials leaves all credentials of the providers on the target.
	KeepCredentials bool
}

// MoveResult is what Pivot did, or what it would do.
type MoveResult struct {
	FormatVersion string           `json:"formatVersion"`
	Outcome       string           `json:"outcome"`
	Plan          *handover.Plan   `json:"plan,omitempty"`
	Report        *handover.Report `json:"report,omitempty"`
	Kubeconfig    string           `json:"kubeconfig,omitempty"`
	Next          []string         `json:"next"`
}

// Pivot hands the work of a management cluster to another cluster, continues a hand-over that was interrupted, or undoes it.
func Pivot(ctx context.Context, deps management.Deps, o MoveOptions) (*MoveResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, done, err := session.OpenAlone(ctx, deps, o.Options, "fleetctl pivot")
	if err != nil {
		return nil, err
	}
	defer done()
	if err := s.RefuseStandby(); err != nil {
		return nil, err
	}
	if !o.Abort { // o.To is empty if the run continues a hand-over
		if err := s.RefuseChild(o.To); err != nil {
			return nil, err
		}
	}
	p := NewMove(converge.NewRun(s), o.To)
	p.KeepCredentials = o.KeepCredentials
	if o.ToKubeconfig != "" {
		if p.toKubeconfig, err = hosts.Kubeconfig(o.ToKubeconfig, ""); err != nil {
			return nil, err
		}
		p.to = targetName(o.ToKubeconfig, p.toKubeconfig)
	}
	if o.Abort && o.SourceIsGone {
		return p.abortAtTarget(ctx)
	}
	if err := p.Look(ctx); err != nil {
		return nil, err
	}
	if o.Abort || o.DryRun && p.Gone {
		return p.aside(ctx, o)
	}
	if err := p.refusal(ctx); err != nil {
		return nil, err
	}
	if o.DryRun {
		return p.aside(ctx, o)
	}
	after := converge.StepPush
	if err := steps.Run(ctx, deps.Report, append(p.StepsGoingOn(), p.Steps(after)...)); err != nil {
		return nil, err
	}
	report, _ := p.report.Peek()
	target, _ := p.Target.Peek()
	return &MoveResult{
		FormatVersion: "1", Outcome: "handed-over", Report: report, Kubeconfig: s.Cluster.Path(management.KubeconfigFile),
		Next: []string{
			"fleetctl status                # the clusters, at " + target.Name,
			"fleetctl host delete           # the host of " + s.Mgmt.Name + ", which has no work any more",
		},
	}, nil
}

// refusal returns an error if this management cluster cannot hand its work over. A dry run gets the same error as the real run.
func (p *Move) refusal(ctx context.Context) error {
	cluster := p.session.Cluster
	if r, err := cluster.Load(); err == nil && r.PivotedTo != "" && p.Under == nil {
		return diag.Errorf(
			"`fleetctl status` shows it. To hand its work on, declare it in fleet.yaml with host.existing and the kubeconfig "+
				cluster.Path(management.KubeconfigFile),
			"the management cluster %s was pivoted to %s already", r.Name, r.PivotedTo)
	}
	if p.Under == nil && p.to == "" {
		return diag.Usage("give --to CLUSTER or --to-kubeconfig FILE", "no hand-over is under way, and nothing says where to pivot to")
	}
	if p.source == nil && !p.Gone {
		return p.noSource(ctx)
	}
	if err := p.settleGiven(ctx); err != nil {
		return err
	}
	return p.checkSource()
}

// noSource is the error about a management cluster that does not run or does not exist.
func (p *Move) noSource(ctx context.Context) error {
	st, err := p.session.Host.State(ctx)
	if err == nil && st == host.StateAbsent {
		return diag.Errorf("make it with `fleetctl init`; or, if another cluster has taken over from it, give that cluster: --to-kubeconfig FILE",
			"the management cluster %s does not exist, and has nothing to hand over", p.session.Mgmt.Name)
	}
	return errors.Join(diag.Errorf("start it first: `fleetctl host start`", "the management cluster %s does not run (it is %s)",
		p.session.Mgmt.Name, st), err)
}

// aside handles the runs without steps: a dry run, or an abort.
func (p *Move) aside(ctx context.Context, o MoveOptions) (*MoveResult, error) {
	if p.Gone {
		return nil, diag.Errorf("run `fleetctl pivot`, which finishes the hand-over at the target alone",
			"the source %s does not exist any more", p.session.Mgmt.Name)
	}
	if p.source == nil {
		return nil, p.noSource(ctx)
	}
	source := handover.Side{Name: p.session.Mgmt.Name, Client: p.source}
	if o.Abort && p.Under == nil && len(p.toKubeconfig) == 0 { // a given target may have copies that an abort without it has left
		if err := handover.CheckFence(ctx, source); err != nil {
			return nil, err
		}
		return p.forgetBegun(ctx, o)
	}
	options := handover.Options{Fleet: p.session.Identity(), Source: source}
	if o.WithoutTarget {
		return p.abort(ctx, options, handover.AbortAlone)
	}
	target, err := p.findTarget(ctx, p.source)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(target.Kubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	options.Target = handover.Side{Name: target.Name, Client: client}
	if o.DryRun {
		if err := mayManage(ctx, target.Name, client); err != nil {
			return nil, err
		}
		if _, err := standing.Check(ctx, p.session, client, following.View{}); err != nil {
			return nil, err
		}
		plan, err := handover.Look(ctx, options)
		if plan == nil {
			return nil, err
		}
		if err == nil && plan.UnderWay == "" {
			err = p.rehearse(ctx, client, target.Name, plan)
		}
		return &MoveResult{FormatVersion: "1", Outcome: "planned", Plan: plan, Next: []string{}}, err
	}
	var result *MoveResult
	if p.Under == nil {
		result, err = p.abortGiven(ctx, options)
	} else {
		result, err = p.abort(ctx, options, handover.Abort)
	}
	if kube.IsUnreachable(err) {
		err = diag.Wrap("", err, "if it is gone for good: `fleetctl pivot --abort --without-target`")
	}
	return result, err
}

// abort undoes a hand-over on both sides, or on one side alone.
func (p *Move) abort(
	ctx context.Context,
	options handover.Options,
	how func(context.Context, handover.Options) (*handover.Report, error),
) (*MoveResult, error) {
	report, err := p.undo(ctx, options, how)
	if errors.Is(err, handover.ErrLeft) { // the source works again: its snapshots can be restored, and the way to the target stays
		if noteErr := p.forgetNote(ctx, report.Target); noteErr != nil {
			p.session.Deps.Report.Warn("a note beside the snapshots still says that " + report.Target + " takes over " + diag.Because(noteErr))
		}
	}
	if err != nil {
		return nil, err
	}
	if err := p.settleAbort(ctx, report.Target); err != nil {
		return nil, err
	}
	return &MoveResult{FormatVersion: "1", Outcome: "undone", Report: report, Next: []string{}}, nil
}

// undo is abort, but keeps the way to the target, and what the place of the snapshots says.
func (p *Move) undo(
	ctx context.Context,
	options handover.Options,
	how func(context.Context, handover.Options) (*handover.Report, error),
) (*handover.Report, error) {
	step := p.session.Deps.Report.Start("undo the hand-over")
	options.Progress = handover.Telling(step.Detail)
	report, err := how(ctx, options)
	if err != nil {
		step.Fail(err)
		return report, err
	}
	step.Done()
	if options.Target.Client != nil {
		tellGiven(ctx, options.Target.Client, report.Target, p.session.Deps.Report.Warn)
	}
	return report, nil
}
