package cmd

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/management"
)

// clusterKubeconfigOptions are the flags of cluster kubeconfig.
type clusterKubeconfigOptions struct {
	kubeconfigFlags
	named
}

func (o *clusterKubeconfigOptions) complete(f *factory, args ...string) error {
	if err := o.check(f); err != nil {
		return err
	}
	return o.named.complete(f, args...)
}

func newClusterKubeconfigCmd(f *factory) *cobra.Command {
	o := &clusterKubeconfigOptions{}
	c := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Print the kubeconfig of a cluster that the fleet repo declares",
		Long: `Print the kubeconfig of the administrator of a cluster that the fleet repo declares. It is read from the management
cluster, where Cluster API keeps it; --output-file writes it to a private file instead, and --merge adds it to your
own kubeconfig.`,
		Example: `  fleetctl cluster kubeconfig shop --output-file shop.kubeconfig
  kubectl --kubeconfig <(fleetctl cluster kubeconfig shop) get nodes
  fleetctl cluster kubeconfig prod/shop --merge`,
		RunE: running(f, o, runClusterKubeconfig),
	}
	f.addReach(c)
	o.add(c)
	takes(f, c, ofAnyCluster)
	return c
}

func runClusterKubeconfig(ctx context.Context, f *factory, o *clusterKubeconfigOptions) error {
	repo, err := f.anyRepo()
	if err != nil {
		return err
	}
	cluster, err := f.anyCluster(ctx, o.name)
	if err != nil {
		return err
	}
	target, err := management.FindDeclared(f.store().For(cluster.ManagementCluster), cluster.ManagementCluster, repo.Dir)
	if err != nil {
		return err
	}
	options := management.KubeconfigOptions{
		Target: target, Workload: cmp.Or(cluster.Namespace, cluster.Name) + "/" + cluster.Name, Declared: true,
	}
	return o.print(ctx, f, options)
}
