package lifecycle

import (
	"context"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The names of the pivot's steps.
const (
	stepTarget          = "reach the target cluster"
	stepTargetProviders = "install providers on the target"
	stepTargetFlux      = "install Flux on the target"
	stepMove            = "move the Cluster API objects"
	stepAttach          = "connect the target's Flux to the fleet repo"
	stepTargetSynced    = "wait for the target's Flux to apply it"
)

// pivot hands the work of a management cluster to one of its workload clusters. What it does to either side goes through this
// type alone, so that a pivot that survives being killed can take its place.
type pivot struct {
	*bootstrap
	cluster *capi.Cluster
	from    *capi.Manager
	client  *kube.Client // of the target
	to      *capi.Manager
	config  []byte
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
		{Name: stepMove, Needs: []string{stepTargetProviders, stepTargetFlux}, Run: p.moveObjects, Timeout: 30 * time.Minute},
		{Name: stepAttach, Needs: []string{stepMove}, Run: p.attach, Timeout: 5 * time.Minute},
		{
			Name: stepTargetSynced, Needs: []string{stepAttach}, Run: p.waitSynced, Timeout: 15 * time.Minute,
			Hint: "the bootstrap cluster is kept until the target has taken over; run the same command again",
		},
	}
}

// reach connects to the target with the kubeconfig that Cluster API made for it.
func (p *pivot) reach(ctx context.Context, _ func(string)) (err error) {
	if p.from, err = capi.New(p.session.client); err != nil {
		return err
	}
	if p.cluster, err = management.FindCluster(ctx, p.from, p.opts.PivotTo); err != nil {
		return err
	}
	if err := p.checkOwnFlux(ctx); err != nil {
		return err
	}
	if p.config, err = p.from.WorkloadKubeconfig(ctx, p.cluster.Key()); err != nil {
		return err
	}
	if p.client, err = kube.New(p.config, kube.Options{}); err != nil {
		return err
	}
	if _, err := p.client.ServerVersion(ctx); err != nil {
		return diag.Wrap("reach the API server of "+p.opts.PivotTo, err, "this machine must be able to reach it")
	}
	if err := p.claimCluster(ctx, p.client); err != nil {
		return err
	}
	p.to, err = capi.New(p.client)
	return err
}

// checkOwnFlux refuses a target that runs a Flux as workload clusters do: once it is the management cluster it would install that over its
// own, again and again.
func (p *pivot) checkOwnFlux(ctx context.Context) error {
	remote, err := flux.NewSystem(p.session.client).Remote(ctx)
	if err != nil {
		return err
	}
	for _, r := range remote {
		if r.Key.Namespace == p.cluster.Namespace && r.Secret.Name == p.cluster.Name+"-kubeconfig" {
			return diag.Errorf("remove the flux.yaml beside its cluster.yaml and run the same command again; `fleetctl cluster add --flux none` declares a cluster without",
				"cluster %s has a Flux of its own, as workload clusters have: it would become the management cluster's too", p.cluster.FullName())
		}
	}
	return nil
}

func (p *pivot) installProviders(ctx context.Context, detail func(string)) error {
	_, err := p.to.Install(ctx, p.plan.source, capi.InstallOptions{Providers: p.plan.providers, Detail: detail})
	return err
}

func (p *pivot) installFlux(ctx context.Context, detail func(string)) error {
	_, err := installFlux(ctx, p.client, p.plan.flux, flux.InstallOptions{Detail: detail})
	return err
}

// moveObjects keeps Flux at the source from undoing the move, checks both sides, and moves. From the moment it begins the objects may
// be on both sides; the bootstrap cluster is only deleted once the target has taken over.
func (p *pivot) moveObjects(ctx context.Context, detail func(string)) error {
	if _, err := capi.MovePreflight(ctx, p.from, p.to); err != nil {
		return err // while Flux can still mend it
	}
	if _, err := flux.NewSystem(p.session.client).Suspend(ctx); err != nil {
		return err
	}
	plan, err := capi.MovePreflight(ctx, p.from, p.to) // again: what Flux made until now is moved too
	if err != nil {
		return err
	}
	for _, left := range plan.Left {
		p.Report.Warn("the target needs " + left.String() + ", which a move leaves behind")
	}
	return capi.Move(ctx, p.from, p.to, plan, detail)
}

// attach points the target's Flux at the fleet repo.
func (p *pivot) attach(ctx context.Context, detail func(string)) error {
	sync, err := flux.GenerateSync(p.syncOptions())
	if err != nil {
		return err
	}
	if err := p.applySync(ctx, p.client, sync, detail); err != nil {
		return err
	}
	return p.confirmClaim(ctx, p.client)
}

// waitSynced is where the target has taken over: from then on this machine remembers it as the management cluster.
func (p *pivot) waitSynced(ctx context.Context, detail func(string)) error {
	if err := flux.NewSystem(p.client).WaitSynced(ctx, p.waitOptions(detail)); err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(p.bootstrap.cluster.Path(management.KubeconfigFile), p.config); err != nil {
		return err
	}
	r := p.record()
	r.PivotedTo = p.cluster.FullName()
	p.result.PivotedTo = r.PivotedTo
	return p.bootstrap.cluster.Save(r)
}

// sameCluster tells whether NAME or NAMESPACE/NAME is that cluster.
func sameCluster(wanted, full string) bool {
	return wanted == full || "/"+wanted == full[len(full)-min(len(full), len(wanted)+1):]
}
