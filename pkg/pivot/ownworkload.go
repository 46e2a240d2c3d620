package pivot

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// looksAtOnce limits how many workload clusters are asked at the same time who they are.
const looksAtOnce = 16

// settleGiven finds out whether the kubeconfig that the user gave leads to a workload cluster of the source. If it does, the hand-over has
// the name of that cluster, and is refused for the same reasons as with --to. Before its init, nothing on a cluster tells that fleet.yaml
// declares it as a management cluster with a folder of its own.
func (p *Move) settleGiven(ctx context.Context) error {
	if p.Under != nil || p.source == nil || len(p.toKubeconfig) == 0 {
		return nil // what was under way is named by its journal
	}
	own, err := p.ownCluster(ctx)
	if err != nil || own == nil {
		return err
	}
	p.to = own.FullName()
	if err := p.session.RefuseChild(p.to); err != nil {
		return err
	}
	return checkOwnFlux(ctx, p.source, own)
}

// ownCluster returns the workload cluster of the source that the given kubeconfig leads to. It returns nil if it leads to another cluster.
// Two kubeconfigs lead to the same cluster if the namespace kube-system has the same UID: addresses and names prove nothing.
func (p *Move) ownCluster(ctx context.Context) (*capi.Cluster, error) {
	given, err := kube.New(p.toKubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	uid, err := handover.ClusterUID(ctx, given)
	if err != nil {
		return nil, unreached("reach the API server of "+p.to, p.to, err, "")
	}
	if err := p.refuseItself(ctx, p.source, p.to, uid); err != nil {
		return nil, err
	}
	from, err := capi.New(p.source)
	if err != nil {
		return nil, err
	}
	clusters, err := management.Clusters(ctx, p.source)
	if err != nil {
		return nil, diag.Wrap("list the workload clusters of "+p.session.Mgmt.Name, err, "")
	}
	uids, silent := make([]string, len(clusters)), make([]error, len(clusters))
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for i := range clusters {
		group.Go(func() error {
			uids[i], silent[i] = uidOf(ctx, from, clusters[i].Key())
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if i := slices.Index(uids, uid); i >= 0 {
		return &clusters[i], nil
	}
	for i := range clusters {
		if silent[i] != nil && p.session.RefuseChild(clusters[i].FullName()) != nil {
			p.session.Deps.Report.Warn(fmt.Sprintf("%s, a management cluster with a folder of its own, does not answer: make sure that the "+
				"kubeconfig does not lead to it (%v)", clusters[i].FullName(), silent[i]))
		}
	}
	return nil, nil
}

// refuseItself refuses the source as its own target. Another address may lead to it, and so may the name of a workload cluster, because a
// management cluster may have taken over the Cluster that it runs on.
func (p *Move) refuseItself(ctx context.Context, source *kube.Client, to, uid string) error {
	itself, err := handover.ClusterUID(ctx, source)
	if err != nil {
		return diag.Wrap("reach the API server of "+p.session.Mgmt.Name, err, diag.Hint(err))
	}
	if itself != uid {
		return nil
	}
	return diag.Usage("name another cluster as the target", "%s is the management cluster %s itself, which has the work already",
		to, p.session.Mgmt.Name)
}

// uidOf asks a workload cluster for the UID of its namespace kube-system, with the kubeconfig that Cluster API has made.
func uidOf(ctx context.Context, from *capi.Manager, cluster kube.Key) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, session.LookTimeout)
	defer cancel()
	kubeconfig, err := from.WorkloadKubeconfig(ctx, cluster)
	if err != nil {
		return "", err
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		return "", err
	}
	return handover.ClusterUID(ctx, client)
}
