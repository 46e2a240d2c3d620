package leaving

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/drain"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// DrainOptions of DrainCluster.
type DrainOptions struct {
	Target *management.Target
	// Cluster is the workload cluster, NAME or NAMESPACE/NAME.
	Cluster string
	// DryRun only says what would be deleted. Cancel resumes Flux, which makes the deleted resources again.
	DryRun, Cancel bool
	// Confirm, if not nil, is called before anything is changed. An error of Confirm ends the command.
	Confirm func(*DrainResult) error
	// Timeout bounds the draining. Default: DrainTimeout.
	Timeout time.Duration
}

// DrainResult names what Kubernetes had made in the cloud from inside a cluster.
type DrainResult struct {
	FormatVersion string `json:"formatVersion"`
	// Outcome is drained, planned or cancelled.
	Outcome           string `json:"outcome"`
	Cluster           string `json:"cluster"`
	ManagementCluster string `json:"managementCluster"`
	// Items are the resources that are deleted, or will be. An item that stays in the cloud says why.
	Items []drain.Item `json:"items"`
	// Suspended are the Flux objects on the management cluster that this run has suspended, so that they do not make
	// the resources again.
	Suspended []string `json:"suspended"`
	Next      []string `json:"next"`
}

// Going are the items that draining deletes, for people to read.
func (r *DrainResult) Going() []string { return r.items(true) }

// Staying are the items that draining leaves in the cloud, with why.
func (r *DrainResult) Staying() []string { return r.items(false) }

func (r *DrainResult) items(going bool) []string {
	var all []string
	for _, i := range r.Items {
		if (i.Stays == "") == going {
			all = append(all, i.String())
		}
	}
	return all
}

type draining struct {
	management.Deps
	opts   DrainOptions
	client *kube.Client
	inside *Inside
	result *DrainResult
}

// Drain deletes the resources that Kubernetes in a workload cluster has made in its cloud, before the cluster is removed. Cluster API does
// not know these resources, and would leave them in the cloud. Until Cancel, Flux does not make them again. Drain can be called again.
// Errors: a cluster that is being deleted, that manages clusters itself, or whose API server does not tell its content.
func Drain(ctx context.Context, deps management.Deps, o DrainOptions) (*DrainResult, error) {
	unlock, err := o.Target.Cluster.Lock("fleetctl cluster drain")
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := &draining{Deps: deps, opts: o, result: &DrainResult{
		FormatVersion: "1", Outcome: "planned", ManagementCluster: o.Target.Name, Items: []drain.Item{}, Suspended: []string{}, Next: []string{},
	}}
	looking, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := d.find(looking); err != nil {
		return nil, err
	}
	switch {
	case o.DryRun:
		return d.result, nil
	case o.Cancel:
		return d.result, d.cancel(ctx)
	}
	if o.Confirm != nil {
		if err := o.Confirm(d.result); err != nil {
			return nil, err
		}
	}
	err = steps.Run(ctx, deps.Report, []steps.Step{
		{Name: "suspend Flux for it", Run: d.keepFluxOff, Timeout: 2 * time.Minute},
		{Name: "drain the cluster", Needs: []string{"suspend Flux for it"}, Run: d.drain},
	})
	name := d.inside.Cluster.Name
	if err != nil {
		hint := cmp.Or(diag.Hint(err), "run the same command again: it continues")
		return nil, diag.Wrap("", err, hint+"; until then Flux is suspended for the cluster, and `fleetctl cluster drain "+name+
			" --cancel` resumes it")
	}
	d.result.Outcome = "drained"
	d.result.Next = []string{
		"fleetctl cluster remove " + name + "    # in two steps",
		"fleetctl cluster drain " + name + " --cancel    # or let Flux make everything again",
	}
	return d.result, nil
}

// find looks at the cluster and its content, and refuses a cluster that cannot be drained completely. To cancel, the cluster only has to
// exist.
func (d *draining) find(ctx context.Context) error {
	client, manager, journal, err := reach(ctx, d.opts.Target)
	if err != nil {
		return err
	}
	d.client = client
	cluster, err := workload(ctx, d.opts.Target, manager, journal, d.opts.Cluster)
	if err != nil {
		return err
	}
	name := cluster.FullName()
	d.inside, d.result.Cluster = &Inside{Cluster: *cluster}, name
	if cluster.Deleting {
		return diag.Errorf("`fleetctl orphans` lists the resources that are left",
			"cluster %s is being deleted, together with the machines of its controllers, and only these controllers can drain it", name)
	}
	d.inside.Look(ctx, manager)
	switch in := d.inside; {
	case in.Dead != nil && d.opts.Cancel:
		return nil
	case in.Dead != nil:
		return &diag.Error{
			Op: "look into cluster " + name, Err: in.Dead, Code: diag.ExitNotReady,
			Hint: "only its own controllers can drain it: repair it, or remove it undrained and list the rest with `fleetctl orphans`",
		}
	case d.opts.Cancel:
		return nil
	case in.Untold != nil:
		return diag.Wrap("look into cluster "+name, in.Untold,
			"its API server answers, but does not say what the cluster has in its cloud: correct that first")
	case len(in.Children) > 0:
		return diag.Errorf("first pivot, or remove the clusters that it manages", "cluster %s manages clusters itself: %s", name,
			plain.Clip(strings.Join(in.Children, ", "), MostText))
	}
	d.result.Items = append(d.result.Items, d.inside.Items...)
	return nil
}

// kubeconfig returns the Secret with the cluster's kubeconfig, which Flux on the management cluster uses for this
// cluster.
func (d *draining) kubeconfig() kube.Key { return capi.KubeconfigSecret(d.inside.Cluster.Key()) }

// keepFluxOff suspends the Flux objects of the management cluster that work on the cluster. The draining itself
// suspends the Flux inside the cluster.
func (d *draining) keepFluxOff(ctx context.Context, _ func(string)) error {
	suspended, err := flux.NewSystem(d.client).KeepOff(ctx, d.kubeconfig())
	for _, ref := range suspended {
		d.result.Suspended = append(d.result.Suspended, ref.String())
	}
	return err
}

// drain deletes the cluster's resources in its cloud.
func (d *draining) drain(ctx context.Context, detail func(string)) error {
	if d.inside.Simulated {
		return steps.NothingToDo("a simulated cluster has no Kubernetes")
	}
	return d.inside.Drain(ctx, cmp.Or(d.opts.Timeout, DrainTimeout), OneByOne(detail))
}

// cancel resumes Flux for the cluster, inside the cluster and on the management cluster.
func (d *draining) cancel(ctx context.Context) error {
	d.result.Outcome = "cancelled"
	if _, err := flux.NewSystem(d.client).BackOn(ctx, d.kubeconfig()); err != nil {
		return err
	}
	err := d.inside.Dead
	if err == nil && !d.inside.Simulated {
		_, err = flux.NewSystem(d.inside.client).Resume(ctx)
	}
	if err == nil {
		return nil
	}
	return &diag.Error{
		Op: "resume the Flux inside the cluster " + d.result.Cluster, Err: err, Code: diag.ExitNotReady,
		Hint: "Flux on the management cluster goes on; run the same command again when the cluster's API server answers",
	}
}
