// Package pivot hands over the work of a whole management cluster: to another cluster (Pivot), into a snapshot and out of it (Backup,
// Restore), and to a standby (ActivateStandby). Drill and RefreshStandby test a snapshot. These workflows run the steps of pkg/converge
// before and after pkg/handover, which hands the objects over.
package pivot

import (
	"context"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The names of the pivot's steps.
const (
	StepTarget          = "reach the target cluster"
	stepTargetProviders = "install providers on the target"
	stepTargetFlux      = "install Flux on the target"
	stepTargetReads     = "have the target read the fleet repo"
	stepTargetClouds    = "have the target reach the clouds"
	stepHandOver        = "hand the work over"
	stepTargetNamed     = "name the target in the fleet repo"
	stepTargetSynced    = "wait for the target's Flux to apply it"
	StepAsBefore        = "wait until the clusters are as they were"
	StepWithdraw        = "take the bootstrap credentials off the target" // the last one
)

// Move hands the work of a management cluster to another cluster, which may be one of its workload clusters. It changes the objects on both
// sides only through pkg/handover, so the same command continues after a kill at any moment.
type Move struct {
	session *session.Session
	// init is the run whose steps come first.
	init *converge.Run

	// to is the workload cluster that takes over, or the name that fleetctl has given to the cluster of toKubeconfig.
	to           string
	toKubeconfig []byte
	// KeepCredentials leaves all credentials of the providers on the target.
	KeepCredentials bool
	// Look sets these fields before the steps begin. Under is the journal of the hand-over that is under way, or nil. Gone says that the
	// source is gone. source is the client of the source, or nil.
	Under  *handover.Journal
	Gone   bool
	source *kube.Client

	Target *steps.Value[*Target]
	report *steps.Value[*handover.Report]
}

// Target is the cluster that takes over.
type Target struct {
	*handedTarget
	client  *kube.Client
	manager *capi.Manager
	flux    *flux.Components // that it gets
}

// Manager manages the clusters of the target.
func (t *Target) Manager() *capi.Manager { return t.manager }

// NewMove returns a Move to a workload cluster, by its name or NAMESPACE/NAME. The steps of init come first.
func NewMove(init *converge.Run, to string) *Move {
	return &Move{
		session: init.Session, init: init, to: to,
		Target: steps.NewValue[*Target]("the target cluster"), report: steps.NewValue[*handover.Report]("the report of the hand-over"),
	}
}

// Steps returns the steps of the hand-over, which begins after the named step of init.
func (p *Move) Steps(after string) []steps.Step {
	return []steps.Step{
		{
			Name: StepTarget, Needs: []string{after}, Work: steps.Make3(p.Target, p.reach, p.init.Client, p.init.Manifests, p.init.Pushed),
			Timeout: 5 * time.Minute,
		},
		{
			Name: stepTargetProviders, Needs: []string{StepTarget}, Work: steps.Do2(p.installProviders, p.Target, p.init.Manifests),
			Timeout: 20 * time.Minute,
			Hint:    "the target must be able to pull the providers' images",
		},
		{
			Name: stepTargetFlux, Needs: []string{StepTarget}, Work: steps.Do2(p.installFlux, p.Target, p.init.Manifests), Timeout: 15 * time.Minute,
			Hint: "the target must be able to pull Flux's images",
		},
		{
			Name: stepTargetReads, Needs: []string{stepTargetFlux}, Work: steps.Do2(p.tryFetch, p.Target, p.init.Pushed), Timeout: 2 * time.Minute,
			Hint: "the target must reach the Git remote, by that address and with these credentials; nothing is handed over yet",
		},
		{
			Name: stepTargetClouds, Needs: []string{stepTargetReads}, Work: steps.Do2(p.tryClouds, p.init.Client, p.Target),
			Timeout: 3 * time.Minute,
		},
		{
			Name: stepHandOver, Needs: []string{stepTargetProviders, stepTargetReads, stepTargetClouds},
			Work: steps.Make3(p.report, p.handOver, p.init.Client, p.Target, p.init.Pushed), Timeout: time.Hour,
			Hint: "run the same command again to continue; before the commit, `fleetctl pivot --abort` undoes it",
		},
		{
			Name: stepTargetNamed, Needs: []string{stepHandOver},
			Work: steps.Do3(p.nameTarget, p.Target, p.init.Pushed, p.init.Endpoint), Timeout: 5 * time.Minute,
			Hint: "the target has taken over; run the same command again",
		},
		{
			Name: stepTargetSynced, Needs: []string{stepTargetNamed}, Work: steps.Do2(p.waitSynced, p.Target, p.init.Pushed),
			Timeout: 15 * time.Minute,
			Hint:    "the source is kept until the target has taken over; run the same command again",
		},
		{
			Name: StepAsBefore, Needs: []string{stepTargetSynced}, Work: steps.Do2(p.waitAsBefore, p.Target, p.report), Timeout: 15 * time.Minute,
			Hint: "the target has taken over; `fleetctl status` shows what is wrong there",
		},
		{
			Name: StepWithdraw, Needs: []string{StepAsBefore},
			Work: steps.Do4(p.end, p.Target, p.init.Manifests, p.init.Endpoint, p.init.Pushed), Timeout: 15 * time.Minute,
			Hint: "the target has taken over; `fleetctl init` gives the providers there the credentials that fleet.yaml names",
		},
	}
}

// reach connects to the target. It also keeps the target's kubeconfig, whose Secret the hand-over moves away from the source: in the state
// folder, and at the source for other machines.
func (p *Move) reach(
	ctx context.Context,
	source *kube.Client,
	m *resolve.Manifests,
	commit *following.Pushed,
	_ func(string),
) (*Target, error) {
	way, err := p.findTarget(ctx, source)
	if err != nil {
		return nil, err
	}
	target := &Target{handedTarget: way, flux: m.Flux}
	if target.client, err = kube.New(way.Kubeconfig, kube.Options{}); err != nil {
		return nil, err
	}
	gone := ""
	if p.Under != nil && !p.Gone {
		gone = "; if it is gone for good: `fleetctl pivot --abort --without-target`"
	}
	if err := answers(ctx, way.Name, target.client, gone); err != nil {
		return nil, err
	}
	if err := mayManage(ctx, way.Name, target.client); err != nil {
		return nil, err
	}
	if way.UID, err = handover.ClusterUID(ctx, target.client); err != nil {
		return nil, unreached("reach the API server of "+way.Name, way.Name, err, gone)
	}
	if !p.Gone {
		if err := p.refuseItself(ctx, source, way.Name, way.UID); err != nil {
			return nil, err
		}
	}
	if err := standing.Claim(ctx, p.session, target.client, commit.View(m.Flux)); err != nil {
		return nil, err
	}
	if target.manager, err = capi.New(target.client); err != nil {
		return nil, err
	}
	return target, p.keepTarget(ctx, source, way)
}

// findTarget returns the target with its kubeconfig: the kubeconfig that the user gave, or that an earlier run has kept, or that Cluster
// API made.
func (p *Move) findTarget(ctx context.Context, source *kube.Client) (*handedTarget, error) {
	if len(p.toKubeconfig) > 0 {
		return &handedTarget{Name: p.to, Kubeconfig: p.toKubeconfig}, nil
	}
	if p.Under != nil {
		kept, err := p.keptTarget(ctx, source)
		if kept != nil || err != nil {
			return kept, err
		}
	}
	from, err := capi.New(source)
	if err != nil {
		return nil, err
	}
	cluster, err := management.FindCluster(ctx, from, p.to)
	if err != nil {
		return nil, err
	}
	if err := checkOwnFlux(ctx, source, cluster); err != nil {
		return nil, err
	}
	kubeconfig, err := from.WorkloadKubeconfig(ctx, cluster.Key())
	return &handedTarget{Name: cluster.FullName(), Kubeconfig: kubeconfig}, err
}

// checkOwnFlux refuses a target that runs the Flux of a workload cluster. As a management cluster, the target would apply the flux.yaml of
// this workload cluster to itself, and would overwrite the Flux of the management cluster again and again.
func checkOwnFlux(ctx context.Context, source *kube.Client, cluster *capi.Cluster) error {
	remote, err := flux.NewSystem(source).Remote(ctx)
	if err != nil {
		return err
	}
	for _, r := range remote {
		if r.Key.Namespace == cluster.Namespace && r.Secret.Name == capi.KubeconfigSecret(cluster.Key()).Name {
			return diag.Errorf("remove the flux.yaml beside its cluster.yaml and run the same command again; `fleetctl cluster add --flux none` "+
				"declares a cluster without Flux",
				"cluster %s already has the Flux of a workload cluster, which would collide with the Flux of the management cluster",
				cluster.FullName())
		}
	}
	return nil
}

func (p *Move) installProviders(ctx context.Context, target *Target, m *resolve.Manifests, detail func(string)) error {
	if p.Under != nil {
		return steps.NothingToDo("the hand-over is under way") // it may have stopped the controllers, so nothing may start them
	}
	_, err := fromvault.Install(ctx, p.session, m.Versions, target.manager, capi.InstallOptions{Providers: m.Providers, Detail: detail})
	return err
}

func (p *Move) installFlux(ctx context.Context, target *Target, m *resolve.Manifests, detail func(string)) error {
	if p.Under != nil {
		return steps.NothingToDo("the hand-over is under way")
	}
	_, err := converge.InstallFlux(ctx, target.client, m.Flux, flux.InstallOptions{Detail: detail})
	return err
}

// tryFetch finds out from inside the target whether the target reaches the Git remote. It runs before anything depends on the remote.
func (p *Move) tryFetch(ctx context.Context, target *Target, commit *following.Pushed, _ func(string)) error {
	if p.Under != nil {
		return steps.NothingToDo("the hand-over is under way")
	}
	return commit.TryFetch(ctx, target.client)
}

// handOver begins the hand-over, or continues it. A hand-over that is refused before its first journal leaves nothing.
func (p *Move) handOver(
	ctx context.Context,
	source *kube.Client,
	target *Target,
	commit *following.Pushed,
	detail func(string),
) (*handover.Report, error) {
	if p.Under == nil {
		if err := markHandedOver(ctx, commit, target.Name, false); err != nil {
			return nil, err
		}
	}
	report, err := handover.Run(ctx, p.handOptions(source, target, commit, detail))
	warn(p.session, report)
	if err != nil && (p.Under == nil || p.Under.Phase == handover.PhaseAborting) { // handover.Run first finishes an abort, and begins anew
		p.takeBackUnlessBegun(ctx, source, target, commit)
	}
	return report, err
}

// handOptions returns the options of the hand-over, which notes before its commit that the target has the work, and keeps the target once
// more.
func (p *Move) handOptions(source *kube.Client, target *Target, commit *following.Pushed, detail func(string)) handover.Options {
	o := handover.Options{
		Fleet: p.session.Identity(), Target: handover.Side{Name: target.Name, Client: target.client}, Attach: commit.TakeUp,
		Source: handover.Side{Name: p.session.Mgmt.Name},
		Check: func(ctx context.Context, at *kube.Client) error {
			if err := following.Rehearse(ctx, p.session, at, commit.View(target.flux), p.rehearsal(target.Name)); err != nil || p.Under != nil {
				return err
			}
			return p.keepOnceMore(ctx, source, target.handedTarget, commit)
		},
		Progress: func(progress handover.Progress) { detail(progress.String()) },
	}
	if !p.Gone {
		o.Source.Client = source
	}
	return o
}

// warn prints the warnings of the hand-over.
func warn(s *session.Session, report *handover.Report) {
	if report == nil {
		return
	}
	for _, warning := range report.Warnings {
		s.Deps.Report.Warn(warning)
	}
}

// waitSynced waits until Flux at the target has applied the commit. Then it records the target as the management cluster on this machine.
func (p *Move) waitSynced(ctx context.Context, target *Target, commit *following.Pushed, detail func(string)) error {
	if err := flux.NewSystem(target.client).WaitSynced(ctx, commit.WaitOptions(detail)); err != nil {
		return err
	}
	return p.remember(target)
}

// remember records the target as the management cluster on this machine. The kept kubeconfig of the target stays until the end of the
// pivot: see Unfinished.
func (p *Move) remember(target *Target) error {
	if err := kube.WriteKubeconfig(p.session.Cluster.Path(management.KubeconfigFile), target.Kubeconfig); err != nil {
		return err
	}
	r := p.session.Record()
	r.PivotedTo = target.Name
	return p.session.Cluster.Save(r)
}

// Unfinished tells whether a run on this machine was cut off after it had recorded the target as the management cluster, and before the end
// of the pivot: the credentials that only the source needed may still be on the target.
func Unfinished(cluster state.Cluster) (bool, error) {
	record, err := cluster.Load()
	if err != nil || record.PivotedTo == "" {
		return false, nil //nolint:nilerr // without a record there was no pivot
	}
	kept, err := readKept(cluster)
	return kept != nil && kept.Name == record.PivotedTo, err
}

// waitAsBefore waits until the clusters that were Available at the source are Available at the target.
func (p *Move) waitAsBefore(ctx context.Context, target *Target, report *handover.Report, detail func(string)) error {
	return waitAvailable(ctx, target.manager, report, detail)
}

// StepsGoingOn returns the steps of init that every hand-over needs. They leave out the steps that change the source's Flux or providers,
// because a hand-over that is under way has stopped these. If the source is gone, they also leave out the steps that need it.
func (p *Move) StepsGoingOn() []steps.Step {
	left := []string{converge.StepProviders, converge.StepFlux, converge.StepConnect, converge.StepSynced}
	if p.Gone {
		left = append(left, converge.StepPreflight, converge.StepHost, converge.StepAPI)
	}
	kept := slices.DeleteFunc(p.init.Steps(), func(s steps.Step) bool { return slices.Contains(left, s.Name) })
	for i := range kept {
		kept[i].Needs = slices.DeleteFunc(slices.Clone(kept[i].Needs), func(need string) bool { return slices.Contains(left, need) })
	}
	return kept
}
