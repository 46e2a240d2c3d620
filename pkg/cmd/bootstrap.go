package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// bootstrapOptions are the flags of bootstrap.
type bootstrapOptions struct {
	initOptions
	bootstrap lifecycle.BootstrapOptions
	master    masterFlags
}

func newBootstrapCmd(f *factory) *cobra.Command {
	o := &bootstrapOptions{}
	b := &o.bootstrap
	c := &cobra.Command{
		Use:   "bootstrap",
		Short: "In a pipeline: init, wait for the clusters, and pivot to a permanent one",
		Long: `Make an ephemeral management cluster that follows the fleet repo, wait until every Cluster that the repo declares is Available, and, with
--pivot-to, hand the work to one of them: the same providers and Flux are installed there, the Cluster API objects are moved, Flux is
attached to the fleet repo there, and the ephemeral cluster is torn down. Without --pivot-to the management cluster is kept, because its
Clusters live only there.

With spec.snapshots.to in fleet.yaml it keeps encrypted snapshots while the clusters are made, so that a runner that dies costs nothing: a new one that is given
--source-is-gone begins from the newest, and makes nothing twice. Without the flag it refuses where there are snapshots, for the first may
still live.

With --environment NAME, or --management NAME --stand-alone, it makes a management cluster that has a parent in fleet.yaml and is to stand alone. The parent is made, and
makes the cluster that the new one runs on; that gets the providers and the Flux of its own, which follows its own folder; then it takes over its own
Cluster and, with --environment, what else the parent has made in that environment. The fleet repo says so, by a push or --pr, with a record in the
parent's folder of which run it was. This machine keeps the way to it, and the parent is torn down if bootstrap made it and nothing else is left there. Where fleet.yaml gives the new one a
repository of its own, that gets a first commit of what belongs to it, with age keys of its own, and is what its Flux follows; --own-git-token-file
reaches it, and of the environment the new one gets only the variables that it names.

Where it fails, a support bundle without secrets (see "fleetctl support-bundle") is gathered before anything is torn down.

It asks no questions. Exit codes: 0 all is Ready; 1 a failure; 2 a mistake in the call; 3 something did not become Ready in time; 130
interrupted. Run it again after any of them.`,
		Example: `  fleetctl bootstrap --repo . --pivot-to platform -o json
  fleetctl bootstrap --environment prod        # the management cluster of prod, by way of its parent, which goes again`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runBootstrap),
	}
	o.addFlags(f, c)
	c.Flags().StringVar(&b.PivotTo, "pivot-to", "", "workload cluster that becomes the management cluster, NAME or NAMESPACE/NAME")
	c.Flags().BoolVar(&b.SourceIsGone, "source-is-gone", false, "the runner of an earlier run is gone with its management cluster, and with one that it may have handed clusters over to: go on from the newest snapshot (spec.snapshots), or from Git")
	c.Flags().StringVar(&b.KubeconfigOut, "kubeconfig-out", "", "file for the kubeconfig of the cluster that holds the work in the end")
	c.Flags().StringVar(&b.SupportFile, "support-bundle", "", "file for the support bundle of a run that fails (default: one in the state folder)")
	c.Flags().DurationVar(&b.ClustersTimeout, "clusters-timeout", lifecycle.DefaultClustersTimeout, "how long the declared clusters may take to become Available")
	o.master.add(c)
	return c
}

func (o *bootstrapOptions) complete(f *factory, _ ...string) error {
	f.streams.InTerminal = false // it asks no questions
	if err := o.initOptions.complete(f); err != nil {
		return err
	}
	o.bootstrap.InitOptions, o.bootstrap.Ephemeral = o.InitOptions, true
	return o.master.complete(f, o.bootstrap)
}

func runBootstrap(ctx context.Context, f *factory, o *bootstrapOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	if o.master.found != nil {
		return runMaster(ctx, f, deps, o)
	}
	result, err := lifecycle.Bootstrap(ctx, deps, o.bootstrap)
	if result == nil {
		return err
	}
	f.closeReporter()
	result.Steps = f.report().Events()
	return errors.Join(err, f.show(views.Bootstrap(result)))
}
