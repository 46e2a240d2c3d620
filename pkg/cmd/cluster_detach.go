package cmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// clusterDetachOptions are the flags of cluster detach.
type clusterDetachOptions struct {
	leaving.DetachOptions
	yes bool
}

func newClusterDetachCmd(f *factory) *cobra.Command {
	o := &clusterDetachOptions{}
	c := &cobra.Command{
		Use:   "detach NAME",
		Short: "Let a management cluster forget a cluster, without deleting it",
		Long: `Remove a workload cluster from a management cluster without deleting anything of it: its machines, networks and disks stay as
they are, and nobody manages them any more. First Flux is stopped from making the cluster again. Then the cluster's objects are removed
while no controller can act on them. The cluster's kubeconfig and a snapshot of its objects are kept in private files. Git still declares
the cluster until you run fleetctl cluster remove, which then deletes no machine.

If it is interrupted, the same command goes on. Until the first object is removed, --abort undoes the detachment. A cluster whose manifests
a Flux Kustomization applies without a chart is refused, because Flux would make it again.`,
		Example: `  fleetctl cluster detach shop --dry-run
  fleetctl cluster detach shop --kubeconfig-out shop.kubeconfig
  fleetctl cluster detach shop --abort`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeWorkloadClusters,
		RunE:              running(f, o, runClusterDetach),
	}
	f.addManagement(c)
	doesWithout(c, findsOne)
	f.addReach(c)
	c.Flags().StringVar(&o.KubeconfigOut, "kubeconfig-out", "", "private file for the cluster's kubeconfig (default: one in the state folder)")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would stay, and change nothing")
	c.Flags().BoolVar(&o.Abort, "abort", false, "undo a detachment before it has removed any object")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	return c
}

func (o *clusterDetachOptions) complete(f *factory, args ...string) (err error) {
	if o.Abort && o.DryRun {
		return errAbortDryRun
	}
	if o.Target, o.Cluster, err = f.actedTargetOf(args[0]); err != nil {
		return err
	}
	if o.KubeconfigOut != "" {
		if o.KubeconfigOut, err = filepath.Abs(o.KubeconfigOut); err != nil {
			return diag.Wrap("find "+o.KubeconfigOut, err, "")
		}
	}
	return nil
}

func runClusterDetach(ctx context.Context, f *factory, o *clusterDetachOptions) error {
	if !o.yes {
		o.Confirm = func(r *leaving.DetachResult) error {
			f.closeReporter()
			question := fmt.Sprintf("Nobody will manage the cluster %s any more. What stays, and still costs money: %s.\n", r.Cluster,
				plain.Count(len(r.Left), "machine"))
			return ui.ConfirmTyped(f.streams, question, r.Cluster, "--yes")
		}
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := leaving.Detach(ctx, deps, o.DetachOptions)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Detach(result))
}
