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
	stepHandOver        = "hand the work over"
	stepTargetSynced    = "wait for the target's Flux to apply it"
	stepAsBefore        = "wait until the clusters are as they were"
)

// pivot hands the work of a management cluster to another one, which may be one of its workload clusters. What it does to either side goes through
// pkg/handover, so that whoever is killed, wherever, the same command goes on.
type pivot struct {
	*session

	// to is the workload cluster that is to take over, or what the cluster of toKubeconfig is called.
	to           string
	toKubeconfig []byte
	// under is the hand-over that is under way, gone tells that its source is not there any more.
	under *handover.Journal
	gone  bool

	target *handedTarget
	client *kube.Client // of the target
	manage *capi.Manager
	report *handover.Report
}

func (p *pivot) steps(after string) []steps.Step {
	return []steps.Step{
		{Name: stepTarget, Needs: []string{after}, Run: p.reach, Timeout: 5 * time.Minute},
		{
			Name: stepTargetProviders, Needs: []string{stepTarget}, Run: p.installProviders, Timeout: 20 * time.Minute,
			Hint: "the target must be able to pull the providers' images",
		},
		{
			Name: stepTargetFlux, Needs: []string{stepTarget}, Run: p.installFlux, Timeout: 15 * time.Minute,
			Hint: "the target must be able to pull Flux's images",
		},
		{
			Name: stepHandOver, Needs: []string{stepTargetProviders, stepTargetFlux}, Run: p.handOver, Timeout: time.Hour,
			Hint: "run the same command again: it goes on; before the commit, `fleetctl pivot --abort` undoes it",
		},
		{
			Name: stepTargetSynced, Needs: []string{stepHandOver}, Run: p.waitSynced, Timeout: 15 * time.Minute,
			Hint: "the source is kept until the target has taken over; run the same command again",
		},
		{
			Name: stepAsBefore, Needs: []string{stepTargetSynced}, Run: p.waitAsBefore, Timeout: 15 * time.Minute,
			Hint: "the target has taken over; `fleetctl status` shows what is wrong there",
		},
	}
}

// reach connects to the target, and keeps the way to it before the source can lose it: in the state folder, and at the source for other machines.
func (p *pivot) reach(ctx context.Context, _ func(string)) (err error) {
	if p.target, err = p.findTarget(ctx); err != nil {
		return err
	}
	if p.client, err = kube.New(p.target.Kubeconfig, kube.Options{}); err != nil {
		return err
	}
	if _, err := p.client.ServerVersion(ctx); err != nil {
		hint := "this machine must be able to reach it"
		if p.under != nil && !p.gone {
			hint += "; if it is gone for good: `fleetctl pivot --abort --without-target`"
		}
		return diag.Wrap("reach the API server of "+p.target.Name, err, hint)
	}
	if err := p.claimCluster(ctx, p.client); err != nil {
		return err
	}
	if p.manage, err = capi.New(p.client); err != nil {
		return err
	}
	return p.keepTarget(ctx)
}

// findTarget finds the way to the target: as it was given, as an earlier run has kept it, or with the kubeconfig that Cluster API made for it.
func (p *pivot) findTarget(ctx context.Context) (*handedTarget, error) {
	if len(p.toKubeconfig) > 0 {
		return &handedTarget{Name: p.to, Kubeconfig: p.toKubeconfig}, nil
	}
	if p.under != nil {
		kept, err := p.keptTarget(ctx)
		if kept != nil || err != nil {
			return kept, err
		}
	}
	from, err := capi.New(p.session.client)
	if err != nil {
		return nil, err
	}
	cluster, err := management.FindCluster(ctx, from, p.to)
	if err != nil {
		return nil, err
	}
	if err := p.checkOwnFlux(ctx, cluster); err != nil {
		return nil, err
	}
	kubeconfig, err := from.WorkloadKubeconfig(ctx, cluster.Key())
	return &handedTarget{Name: cluster.FullName(), Kubeconfig: kubeconfig}, err
}

// checkOwnFlux refuses a target that runs a Flux as workload clusters do: once it is the management cluster it would install that over its
// own, again and again.
func (p *pivot) checkOwnFlux(ctx context.Context, cluster *capi.Cluster) error {
	remote, err := flux.NewSystem(p.session.client).Remote(ctx)
	if err != nil {
		return err
	}
	for _, r := range remote {
		if r.Key.Namespace == cluster.Namespace && r.Secret.Name == cluster.Name+"-kubeconfig" {
			return diag.Errorf("remove the flux.yaml beside its cluster.yaml and run the same command again; `fleetctl cluster add --flux none` declares a cluster without",
				"cluster %s has a Flux of its own, as workload clusters have: it would become the management cluster's too", cluster.FullName())
		}
	}
	return nil
}

func (p *pivot) installProviders(ctx context.Context, detail func(string)) error {
	if p.under != nil {
		return steps.NothingToDo("the hand-over is under way") // its controllers may be stopped, which is no fault to mend
	}
	_, err := p.installWith(ctx, p.manage, capi.InstallOptions{Providers: p.plan.providers, Detail: detail})
	return err
}

func (p *pivot) installFlux(ctx context.Context, detail func(string)) error {
	if p.under != nil {
		return steps.NothingToDo("the hand-over is under way")
	}
	_, err := installFlux(ctx, p.client, p.plan.flux, flux.InstallOptions{Detail: detail})
	return err
}

// handOver begins the hand-over, or goes on with it.
func (p *pivot) handOver(ctx context.Context, detail func(string)) error {
	if p.under == nil {
		if err := p.markHandedOver(ctx, p.target.Name); err != nil {
			return err
		}
	}
	o := handover.Options{
		Fleet: p.identity(), Target: handover.Side{Name: p.target.Name, Client: p.client}, Attach: p.attachFlux,
		Source:   handover.Side{Name: p.mgmt.Name},
		Progress: func(progress handover.Progress) { detail(progress.String()) },
	}
	if !p.gone {
		o.Source.Client = p.session.client
	}
	report, err := handover.Run(ctx, o)
	p.report = report
	if report != nil {
		for _, warning := range report.Warnings {
			p.Report.Warn(warning)
		}
	}
	return err
}

// waitSynced is where the target has taken over: from then on this machine remembers it as the management cluster.
func (p *pivot) waitSynced(ctx context.Context, detail func(string)) error {
	if err := flux.NewSystem(p.client).WaitSynced(ctx, p.waitOptions(detail)); err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(p.cluster.Path(management.KubeconfigFile), p.target.Kubeconfig); err != nil {
		return err
	}
	r := p.record()
	r.PivotedTo = p.target.Name
	if err := p.cluster.Save(r); err != nil {
		return err
	}
	return removeKept(p.cluster)
}

// waitAsBefore waits until the target's Cluster API says of the clusters that were Available at the source that they are.
func (p *pivot) waitAsBefore(ctx context.Context, detail func(string)) error {
	return waitAvailable(ctx, p.manage, p.report, detail)
}

// stepsGoingOn are those of init that a hand-over needs in any case. None of them touches the source's Flux or its providers, which a hand-over that
// is under way has stopped; where the source is gone, none of them asks for it.
func (p *pivot) stepsGoingOn() []steps.Step {
	left := []string{stepProviders, stepFlux, stepConnect, stepSynced}
	if p.gone {
		left = append(left, stepPreflight, stepHost, stepAPI)
	}
	kept := slices.DeleteFunc(p.initSteps(), func(s steps.Step) bool { return slices.Contains(left, s.Name) })
	for i := range kept {
		kept[i].Needs = slices.DeleteFunc(slices.Clone(kept[i].Needs), func(need string) bool { return slices.Contains(left, need) })
	}
	return kept
}

// sameCluster tells whether NAME or NAMESPACE/NAME is that cluster.
func sameCluster(wanted, full string) bool {
	return wanted == full || "/"+wanted == full[len(full)-min(len(full), len(wanted)+1):]
}
