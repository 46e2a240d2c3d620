package masters

import (
	"context"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/connect"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/pivot"
)

// remember keeps the kubeconfig of the new management cluster, which so far came from the parent.
func (m *master) remember(ctx context.Context) error {
	connected, err := connect.Connect(ctx, m.Deps, connect.Options{
		Dir: m.dirOf(m.result.Cluster), Cluster: m.result.Cluster,
		MergeInto: m.opts.MergeKubeconfig,
	})
	if err != nil {
		return diag.Wrap("keep the way to "+m.result.Cluster, err, "")
	}
	m.result.Kubeconfig = connected.Kubeconfig
	if out := m.opts.KubeconfigOut; out != "" {
		target, err := management.Find(m.Store, m.result.Cluster, m.dirOf(m.result.Cluster))
		if err != nil {
			return err
		}
		if _, err := management.Kubeconfig(ctx, management.KubeconfigOptions{Target: target, OutputFile: out}); err != nil {
			return err
		}
		m.result.Kubeconfig = out
	}
	return nil
}

// proveTimeout limits how long the new management cluster may take to become as Ready without its parent as it was with the parent.
const proveTimeout = 10 * time.Minute

// prove looks at the new management cluster only by the kubeconfig that this machine has kept. The management cluster's Flux has to be
// healthy, and the management cluster has to have the Cluster under it.
func (m *master) prove(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	step := m.Report.Start("look whether " + m.result.Cluster + " " + what)
	if err := m.stands(ctx, step.Detail); err != nil {
		step.Fail(err)
		return diag.Wrap("look whether "+m.result.Cluster+" "+what, err, "`fleetctl status --management "+m.result.Cluster+"` shows why")
	}
	step.Done()
	return nil
}

// tellStaying warns about the credentials that stay on the new management cluster.
func (m *master) tellStaying(ctx context.Context) {
	client, err := m.kept(ctx)
	if err != nil {
		m.Report.Warn("cannot tell which credentials stay on " + m.result.Cluster + ": " + err.Error())
		return
	}
	pivot.TellStaying(ctx, client, m.result.Cluster, m.Report.Warn)
}

// kept returns a client of the new management cluster, by the kubeconfig that this machine has kept.
func (m *master) kept(ctx context.Context) (*kube.Client, error) {
	target, err := management.Find(m.Store, m.result.Cluster, m.dirOf(m.result.Cluster))
	if err != nil {
		return nil, err
	}
	return target.Client(ctx)
}

func (m *master) stands(ctx context.Context, detail func(string)) error {
	client, err := m.kept(ctx)
	if err != nil {
		return err
	}
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	own, err := management.FindCluster(ctx, manager, m.result.Cluster)
	if err != nil {
		return err
	}
	keys := []kube.Key{own.Key()}
	for _, taken := range m.taken {
		c, err := management.FindCluster(ctx, manager, taken.Name)
		if err != nil {
			return err
		}
		keys = append(keys, c.Key())
	}
	if err := manager.WaitAvailable(ctx, keys, detail); err != nil {
		return err
	}
	report, err := flux.NewSystem(client).Status(ctx)
	if err != nil {
		return err
	}
	if !report.Healthy() {
		return diag.NotReady("`fleetctl status --management "+m.result.Cluster+"` shows why", "Flux on %s is not healthy", m.result.Cluster)
	}
	return nil
}
