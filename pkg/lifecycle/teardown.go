package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// TeardownOptions say what `fleetctl teardown` removes.
type TeardownOptions struct {
	Target *Target
	// DeleteClusters deletes the workload clusters that live only there.
	DeleteClusters bool
	// Confirm, if not nil, is asked before anything is deleted; its error ends the command.
	Confirm func(clusters []string) error
	Timeout time.Duration
}

// TeardownResult is what Teardown removed, and what it could not.
type TeardownResult struct {
	FormatVersion   string           `json:"formatVersion"`
	Cluster         string           `json:"cluster"`
	Changed         bool             `json:"changed"`
	DeletedClusters []string         `json:"deletedClusters"`
	Leftovers       []string         `json:"leftovers"`
	Steps           []progress.Event `json:"steps"`
}

// deleteTimeout bounds the deletion of the workload clusters: machines in a cloud take their time.
const deleteTimeout = 30 * time.Minute

// Teardown removes a management cluster: refuses while Clusters live only there, or deletes them first if asked; then the host, the
// state folder and our kubeconfig entries. It never touches the Git repository, and doing it twice is fine.
func Teardown(ctx context.Context, deps Deps, o TeardownOptions) (*TeardownResult, error) {
	ctx, cancel := withTimeout(ctx, o.Timeout)
	defer cancel()
	t := &teardown{Deps: deps, opts: o, result: &TeardownResult{
		FormatVersion: "1", Cluster: o.Target.Name, DeletedClusters: []string{}, Leftovers: []string{},
	}}
	if err := t.look(ctx); err != nil {
		return nil, timedOut(ctx, err)
	}
	if t.state == host.StateAbsent && o.Target.Record == nil {
		return t.result, nil
	}
	unlock, err := o.Target.Cluster.Lock("fleetctl teardown")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := t.agree(); err != nil {
		return nil, err
	}
	if err := Run(ctx, deps.Report, t.steps()); err != nil {
		return nil, err
	}
	t.result.Changed = true
	return t.result, nil
}

type teardown struct {
	Deps
	opts     TeardownOptions
	result   *TeardownResult
	host     host.Host
	state    host.State
	client   *kube.Client
	manager  *capi.Manager
	clusters []capi.Cluster
}

// look finds out what there is, and changes nothing.
func (t *teardown) look(ctx context.Context) (err error) {
	if r := t.opts.Target.Record; t.opts.Target.pivoted() {
		return diag.Errorf("pivot back to an ephemeral management cluster first, or delete the cluster where it was made",
			"the management cluster %s is the workload cluster %s: it is permanent and manages itself", r.Name, r.PivotedTo)
	}
	if t.host, err = t.opts.Target.Host(ctx); err != nil {
		return err
	}
	if t.state, err = t.host.State(ctx); err != nil {
		return err
	}
	switch t.state {
	case host.StateForeign:
		return diag.Errorf("remove it with the tool that made it", "there is a cluster %s that fleetctl did not make", t.opts.Target.Name)
	case host.StateStopped:
		// Its Clusters may still run in a cloud: only its own API server can tell.
		if t.state, err = t.host.Start(ctx, nil); err != nil {
			return diag.Wrap("start the management cluster to see which workload clusters live there", err, "")
		}
	case host.StateRunning, host.StateAbsent, host.StateBroken:
	}
	if t.state != host.StateRunning {
		return nil
	}
	if t.client, err = t.opts.Target.Client(ctx); err != nil {
		return err
	}
	if t.manager, err = capi.New(t.client); err != nil {
		return err
	}
	t.clusters, err = t.manager.Clusters(ctx)
	return diag.Wrap("list the workload clusters of "+t.opts.Target.Name, err, "")
}

// agree refuses, or asks, before anything is deleted.
func (t *teardown) agree() error {
	names := fullNames(t.clusters)
	if len(names) > 0 && !t.opts.DeleteClusters {
		return diag.Errorf(fmt.Sprintf("move them to a permanent management cluster: fleetctl bootstrap --cluster %s --pivot-to CLUSTER; or delete them as well: fleetctl teardown --cluster %s --delete-clusters",
			t.opts.Target.Name, t.opts.Target.Name),
			"%d workload clusters live only on the management cluster %s: %s", len(names), t.opts.Target.Name, strings.Join(names, ", "))
	}
	if t.opts.Confirm == nil {
		return nil
	}
	return t.opts.Confirm(names)
}

func (t *teardown) steps() []Step {
	return []Step{
		{Name: "suspend Flux", Done: t.noClusters, Run: t.suspendFlux, Timeout: 2 * time.Minute},
		{
			Name: "delete workload clusters", Needs: []string{"suspend Flux"}, Done: t.noClusters, Run: t.deleteClusters,
			Timeout: deleteTimeout, Hint: "`fleetctl status` shows what holds them; run teardown again to go on",
		},
		{Name: "stop serving the fleet repo", Needs: []string{"delete workload clusters"}, Run: t.stopServing, Timeout: time.Minute},
		{Name: "delete management cluster", Needs: []string{"delete workload clusters"}, Done: t.noHost, Run: t.deleteHost, Timeout: 5 * time.Minute},
		{
			Name: "remove state", Needs: []string{"delete management cluster", "stop serving the fleet repo"}, Run: t.removeState,
			Timeout: time.Minute,
		},
	}
}

func (t *teardown) noClusters(context.Context) (string, bool, error) {
	return "there are no workload clusters", len(t.clusters) == 0, nil
}

// suspendFlux keeps Flux from making anew what is being deleted.
func (t *teardown) suspendFlux(ctx context.Context, _ func(string)) error {
	_, err := flux.NewSystem(t.client).Suspend(ctx)
	return err
}

func (t *teardown) deleteClusters(ctx context.Context, detail func(string)) error {
	keys := make([]kube.Key, 0, len(t.clusters))
	for _, c := range t.clusters {
		keys = append(keys, c.Key())
	}
	if err := t.manager.DeleteClusters(ctx, keys, detail); err != nil {
		return err
	}
	t.result.DeletedClusters = fullNames(t.clusters)
	return nil
}

func (t *teardown) stopServing(ctx context.Context, _ func(string)) error {
	return gitserve.Stop(ctx, t.opts.Target.Cluster.Path(gitServeDir))
}

func (t *teardown) noHost(context.Context) (string, bool, error) {
	return "it does not exist", t.state == host.StateAbsent, nil
}

func (t *teardown) deleteHost(ctx context.Context, _ func(string)) error {
	left, err := t.host.Delete(ctx)
	t.result.Leftovers = append(t.result.Leftovers, left...)
	return err
}

// removeState removes our entries from the user's kubeconfig, and the state folder as the very last thing: until then, teardown
// can be run again.
func (t *teardown) removeState(ctx context.Context, _ func(string)) error {
	if r := t.opts.Target.Record; r != nil && r.MergedInto != "" {
		if _, err := kube.RemoveFromKubeconfig(ctx, r.MergedInto, contextName(r.Name)); err != nil {
			return err
		}
	}
	return t.opts.Target.Cluster.Remove()
}
