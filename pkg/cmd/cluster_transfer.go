package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/transfer"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// clusterTransferOptions are the flags of cluster transfer.
type clusterTransferOptions struct {
	transfer.Options
	changeFlags
	yes bool
}

func newClusterTransferCmd(f *factory) *cobra.Command {
	o := &clusterTransferOptions{}
	c := &cobra.Command{
		Use:   "transfer NAME --to MANAGEMENT",
		Short: "Hand one cluster to another management cluster of the fleet",
		Long: `Hand one workload cluster to another management cluster of the fleet. Both management clusters go on with their other
clusters. The machines, networks and disks stay as they are. The command stops the source's Flux from changing the
cluster, copies the cluster's objects while no controller can act on them, and compares both sides. It also tries, in
a dry run of the API server, what the other side's Flux would do with the cluster and with what the Git remote has:
before anything changes, with --dry-run too, and again with the copies. Then the other management cluster takes over, in
one write. After that the command moves the cluster's folder in the fleet repo, with --push, --pr or, without a remote,
--commit. When the Flux of both sides has applied this commit, the source deletes its remaining objects.

When it is interrupted, the same command goes on, on any machine that reaches both management clusters; --to may be
left out then. Before the other management cluster has taken over, --abort undoes the transfer. With --pr, no Flux
changes the cluster between the hand-over and the merge.

If the other management cluster has no cluster in this environment yet, the manifests that all clusters of the environment share are copied
too. Otherwise the environment must be the same on both sides, or --accept-differences accepts the environment of the other side.`,
		Example: `  fleetctl cluster transfer shop --to second --dry-run
  fleetctl cluster transfer shop --to second --push
  fleetctl cluster transfer shop --to second --pr          # and again, when it is merged
  fleetctl cluster transfer shop --abort
  fleetctl cluster transfer shop --to second --abort --source-is-gone    # where the source is gone for good`,
		Args: cobra.ExactArgs(1),
		RunE: running(f, o, runClusterTransfer),
	}
	c.Flags().StringVar(&o.To, "to", "",
		"name in fleet.yaml of the management cluster that takes over (default: the target of the transfer in progress)")
	c.Flags().BoolVar(&o.AcceptDifferences, "accept-differences", false,
		"accept that the other management cluster has other features for the environment")
	c.Flags().BoolVar(&o.Abort, "abort", false, "undo a transfer before the other management cluster has taken over")
	c.Flags().BoolVar(&o.WithoutTarget, "without-target", false, "with --abort: the other management cluster is gone, so remove nothing there")
	c.Flags().BoolVar(&o.SourceIsGone, "source-is-gone", false,
		"with --abort and --to: the source is gone, and will never act again")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	completeFlag(c, "to", f.completeFrom(-1, func(r *fleetrepo.Repo, _ []string) []string { return r.ManagementClusterNames() }))
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

func (o *clusterTransferOptions) complete(f *factory, args ...string) (err error) {
	o.Cluster = args[0]
	if o.Abort && o.dryRun {
		return errAbortDryRun
	}
	switch {
	case o.WithoutTarget && !o.Abort:
		return diag.Usage("add --abort", "--without-target is for an abort")
	case o.SourceIsGone && !o.Abort:
		return diag.Usage("leave it out: once the other management cluster has taken over, the same command finishes it without the source. "+
			"To undo what has begun, add --abort",
			"--source-is-gone is for an abort")
	case o.SourceIsGone && o.WithoutTarget:
		return errBothGone
	case o.SourceIsGone && o.To == "":
		return diag.Usage("give --to MANAGEMENT", "only the source could tell which management cluster was to take over")
	}
	o.DryRun, o.remote = o.dryRun, true
	o.Change, err = f.changeOptions(&o.changeFlags)
	return err
}

func runClusterTransfer(ctx context.Context, f *factory, o *clusterTransferOptions) error {
	if !o.yes {
		o.Confirm = func(r *transfer.Result) error {
			f.closeReporter()
			question := fmt.Sprintf("Management cluster %s takes cluster %s over from %s: %s.\n", r.To, r.Cluster, r.From,
				views.Counts(r.Plan.Counts))
			return ui.ConfirmTyped(f.streams, question, r.Cluster, "--yes")
		}
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := transfer.Run(ctx, deps, o.Options)
	if err != nil && (result == nil || result.Plan == nil || !o.dryRun) {
		return err
	}
	f.closeReporter()
	return errors.Join(err, f.show(views.Transfer(result)))
}
