package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The names of the pivot's steps.
const (
	stepTarget          = "reach the target cluster"
	stepTargetProviders = "install providers on the target"
	stepTargetFlux      = "install Flux on the target"
	stepTargetReads     = "have the target read the fleet repo"
	stepHandOver        = "hand the work over"
	stepTargetSynced    = "wait for the target's Flux to apply it"
	stepAsBefore        = "wait until the clusters are as they were"
)

// pivot hands the work of a management cluster to another one, which may be one of its workload clusters. What it does to either side goes through
// pkg/handover, so that whoever is killed, wherever, the same command goes on.
type pivot struct {
	session *session
	// init is the run of init's steps that come before.
	init *initRun

	// to is the workload cluster that is to take over, or what the cluster of toKubeconfig is called.
	to           string
	toKubeconfig []byte
	// What a look has found before the steps begin: the hand-over that is under way, whether its source is not there any more, and the way to that
	// where it is; under and source are nil where there is none.
	under  *handover.Journal
	gone   bool
	source *kube.Client

	target *steps.Value[*pivotTarget]
	report *steps.Value[*handover.Report]
}

// pivotTarget is the cluster that takes over.
type pivotTarget struct {
	*handedTarget
	client  *kube.Client
	manager *capi.Manager
	flux    *flux.Components // that it gets
}

func newPivot(init *initRun, to string) *pivot {
	return &pivot{
		session: init.session, init: init, to: to,
		target: steps.NewValue[*pivotTarget]("the target cluster"), report: steps.NewValue[*handover.Report]("the report of the hand-over"),
	}
}

func (p *pivot) steps(after string) []steps.Step {
	return []steps.Step{
		{Name: stepTarget, Needs: []string{after}, Work: steps.Make3(p.target, p.reach, p.init.client, p.init.manifests, p.init.pushed), Timeout: 5 * time.Minute},
		{
			Name: stepTargetProviders, Needs: []string{stepTarget}, Work: steps.Do2(p.installProviders, p.target, p.init.manifests), Timeout: 20 * time.Minute,
			Hint: "the target must be able to pull the providers' images",
		},
		{
			Name: stepTargetFlux, Needs: []string{stepTarget}, Work: steps.Do2(p.installFlux, p.target, p.init.manifests), Timeout: 15 * time.Minute,
			Hint: "the target must be able to pull Flux's images",
		},
		{
			Name: stepTargetReads, Needs: []string{stepTargetFlux}, Work: steps.Do2(p.tryFetch, p.target, p.init.pushed), Timeout: 2 * time.Minute,
			Hint: "the target must reach the Git remote, by that address and with these credentials; nothing is handed over yet",
		},
		{
			Name: stepHandOver, Needs: []string{stepTargetProviders, stepTargetReads},
			Work: steps.Make3(p.report, p.handOver, p.init.client, p.target, p.init.pushed), Timeout: time.Hour,
			Hint: "run the same command again: it goes on; before the commit, `fleetctl pivot --abort` undoes it",
		},
		{
			Name: stepTargetSynced, Needs: []string{stepHandOver}, Work: steps.Do2(p.waitSynced, p.target, p.init.pushed), Timeout: 15 * time.Minute,
			Hint: "the source is kept until the target has taken over; run the same command again",
		},
		{
			Name: stepAsBefore, Needs: []string{stepTargetSynced}, Work: steps.Do2(p.waitAsBefore, p.target, p.report), Timeout: 15 * time.Minute,
			Hint: "the target has taken over; `fleetctl status` shows what is wrong there",
		},
	}
}

// reach connects to the target, and keeps the way to it before the source can lose it: in the state folder, and at the source for other machines.
func (p *pivot) reach(ctx context.Context, source *kube.Client, m *manifests, commit *pushed, _ func(string)) (*pivotTarget, error) {
	way, err := p.findTarget(ctx, source)
	if err != nil {
		return nil, err
	}
	target := &pivotTarget{handedTarget: way, flux: m.flux}
	if target.client, err = kube.New(way.Kubeconfig, kube.Options{}); err != nil {
		return nil, err
	}
	if _, err := target.client.ServerVersion(ctx); err != nil {
		hint := "this machine must be able to reach it"
		if p.under != nil && !p.gone {
			hint += "; if it is gone for good: `fleetctl pivot --abort --without-target`"
		}
		return nil, diag.Wrap("reach the API server of "+way.Name, err, hint)
	}
	if err := p.session.claimCluster(ctx, target.client, commit.view(m.flux)); err != nil {
		return nil, err
	}
	if target.manager, err = capi.New(target.client); err != nil {
		return nil, err
	}
	return target, p.keepTarget(ctx, source, way)
}

// findTarget finds the way to the target: as it was given, as an earlier run has kept it, or with the kubeconfig that Cluster API made for it.
func (p *pivot) findTarget(ctx context.Context, source *kube.Client) (*handedTarget, error) {
	if len(p.toKubeconfig) > 0 {
		return &handedTarget{Name: p.to, Kubeconfig: p.toKubeconfig}, nil
	}
	if p.under != nil {
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

// checkOwnFlux refuses a target that runs a Flux as workload clusters do: once it is the management cluster it would install that over its
// own, again and again.
func checkOwnFlux(ctx context.Context, source *kube.Client, cluster *capi.Cluster) error {
	remote, err := flux.NewSystem(source).Remote(ctx)
	if err != nil {
		return err
	}
	for _, r := range remote {
		if r.Key.Namespace == cluster.Namespace && r.Secret.Name == capi.KubeconfigSecret(cluster.Key()).Name {
			return diag.Errorf("remove the flux.yaml beside its cluster.yaml and run the same command again; `fleetctl cluster add --flux none` declares a cluster without",
				"cluster %s has a Flux of its own, as workload clusters have: it would become the management cluster's too", cluster.FullName())
		}
	}
	return nil
}

func (p *pivot) installProviders(ctx context.Context, target *pivotTarget, m *manifests, detail func(string)) error {
	if p.under != nil {
		return steps.NothingToDo("the hand-over is under way") // its controllers may be stopped, which is no fault to mend
	}
	_, err := p.session.installWith(ctx, m.versions, target.manager, capi.InstallOptions{Providers: m.providers, Detail: detail})
	return err
}

func (p *pivot) installFlux(ctx context.Context, target *pivotTarget, m *manifests, detail func(string)) error {
	if p.under != nil {
		return steps.NothingToDo("the hand-over is under way")
	}
	_, err := installFlux(ctx, target.client, m.flux, flux.InstallOptions{Detail: detail})
	return err
}

// tryFetch finds out from inside the target whether it reaches the Git remote, before anything depends on it.
func (p *pivot) tryFetch(ctx context.Context, target *pivotTarget, commit *pushed, _ func(string)) error {
	if p.under != nil {
		return steps.NothingToDo("the hand-over is under way")
	}
	return commit.tryFetch(ctx, target.client)
}

// handOver begins the hand-over, or goes on with it.
func (p *pivot) handOver(ctx context.Context, source *kube.Client, target *pivotTarget, commit *pushed, detail func(string)) (*handover.Report, error) {
	if p.under == nil {
		if err := commit.markHandedOver(ctx, target.Name); err != nil {
			return nil, err
		}
	}
	o := handover.Options{
		Fleet: p.session.identity(), Target: handover.Side{Name: target.Name, Client: target.client}, Attach: commit.takeUp,
		Source: handover.Side{Name: p.session.mgmt.Name},
		Check: func(ctx context.Context, at *kube.Client) error {
			return p.session.rehearse(ctx, at, target.Name, commit.view(target.flux))
		},
		Progress: func(progress handover.Progress) { detail(progress.String()) },
	}
	if !p.gone {
		o.Source.Client = source
	}
	report, err := handover.Run(ctx, o)
	p.session.warn(report)
	return report, err
}

// warn tells what a hand-over found that its user has to look at.
func (s *session) warn(report *handover.Report) {
	if report == nil {
		return
	}
	for _, warning := range report.Warnings {
		s.deps.Report.Warn(warning)
	}
}

// waitSynced is where the target has taken over: from then on this machine remembers it as the management cluster.
func (p *pivot) waitSynced(ctx context.Context, target *pivotTarget, commit *pushed, detail func(string)) error {
	if err := flux.NewSystem(target.client).WaitSynced(ctx, commit.waitOptions(detail)); err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(p.session.cluster.Path(management.KubeconfigFile), target.Kubeconfig); err != nil {
		return err
	}
	r := p.session.record()
	r.PivotedTo = target.Name
	if err := p.session.cluster.Save(r); err != nil {
		return err
	}
	return removeKept(p.session.cluster)
}

// waitAsBefore waits until the target's Cluster API says of the clusters that were Available at the source that they are.
func (p *pivot) waitAsBefore(ctx context.Context, target *pivotTarget, report *handover.Report, detail func(string)) error {
	return waitAvailable(ctx, target.manager, report, detail)
}

// stepsGoingOn are those of init that a hand-over needs in any case. None of them touches the source's Flux or its providers, which a hand-over that
// is under way has stopped; where the source is gone, none of them asks for it.
func (p *pivot) stepsGoingOn() []steps.Step {
	left := []string{stepProviders, stepFlux, stepConnect, stepSynced}
	if p.gone {
		left = append(left, stepPreflight, stepHost, stepAPI)
	}
	kept := slices.DeleteFunc(p.init.initSteps(), func(s steps.Step) bool { return slices.Contains(left, s.Name) })
	for i := range kept {
		kept[i].Needs = slices.DeleteFunc(slices.Clone(kept[i].Needs), func(need string) bool { return slices.Contains(left, need) })
	}
	return kept
}

// sameCluster tells whether NAME or NAMESPACE/NAME is that cluster.
func sameCluster(wanted, full string) bool {
	return wanted == full || "/"+wanted == full[len(full)-min(len(full), len(wanted)+1):]
}
