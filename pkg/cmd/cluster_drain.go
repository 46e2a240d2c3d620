package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// mostAsked bounds the length of names in a question, because the cluster chooses them.
const mostAsked = 1000

// clusterDrainOptions are the flags of cluster drain.
type clusterDrainOptions struct {
	leaving.DrainOptions
	yes bool
}

func newClusterDrainCmd(f *factory) *cobra.Command {
	o := &clusterDrainOptions{}
	c := &cobra.Command{
		Use:   "drain NAME",
		Short: "Delete the load balancers and volumes that a cluster has in its cloud",
		Long: `Delete the cloud resources that Kubernetes has made from inside a workload cluster: the load balancers of its Services,
Ingresses and Gateways, and the volumes of its claims, with the workloads that use them. Cluster API does not know these resources. If the
cluster is removed without draining, they stay, cost money, and may keep the cluster's network from being deleted. Run this command before
the second step of fleetctl cluster remove.

First the command suspends Flux, because Flux would make the resources again: the cluster's own Flux, and the Flux objects on the
management cluster that work on this cluster. --cancel resumes Flux. Flux then makes everything again, except for the data of deleted
volumes. A volume whose reclaim policy is Retain stays, and the command names it with its id in the cloud. The command asks for the
cluster's name. After an interruption, the same command goes on.`,
		Example: `  fleetctl cluster drain shop --dry-run
  fleetctl cluster drain shop
  fleetctl cluster drain shop --cancel`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeWorkloadClusters,
		RunE:              running(f, o, runClusterDrain),
	}
	f.addManagement(c)
	doesWithout(c, findsOne)
	f.addReach(c)
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would be deleted, and change nothing")
	c.Flags().BoolVar(&o.Cancel, "cancel", false, "resume Flux for a drained cluster")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default 10m)")
	return c
}

func (o *clusterDrainOptions) complete(f *factory, args ...string) (err error) {
	if o.Cancel && o.DryRun {
		return diag.Usage("leave one of them out", "--cancel changes something, and --dry-run does not")
	}
	o.Target, o.Cluster, err = f.actedTargetOf(args[0])
	return err
}

func runClusterDrain(ctx context.Context, f *factory, o *clusterDrainOptions) error {
	if !o.yes {
		o.Confirm = func(r *leaving.DrainResult) error {
			f.closeReporter()
			question := "There is nothing to delete yet. Flux is suspended, so that it stays so.\n"
			if goes := r.Going(); len(goes) > 0 {
				question = fmt.Sprintf("These resources are deleted, with the data of the volumes. Nobody can reach the workloads behind the load "+
					"balancers afterwards: %s\n",
					plain.Clip(strings.Join(goes, "; "), mostAsked))
			}
			return ui.ConfirmTyped(f.streams, question, r.Cluster[strings.LastIndex(r.Cluster, "/")+1:], "--yes")
		}
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := leaving.Drain(ctx, deps, o.DrainOptions)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Drain(result))
}
