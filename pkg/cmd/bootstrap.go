package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
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
		Long: `Make an ephemeral management cluster that follows the fleet repo, and wait until every Cluster in the repo is Available. With
--pivot-to, one of these clusters then becomes the management cluster: fleetctl installs the same providers and Flux there, moves the
Cluster API objects, connects Flux to the fleet repo, and tears the ephemeral cluster down. Without --pivot-to, bootstrap keeps the
ephemeral cluster, because only this cluster has the Cluster API objects.

With spec.snapshots.to in fleet.yaml, bootstrap keeps encrypted snapshots while the clusters are made. If the runner dies, start bootstrap
on a new runner with --source-is-gone: it goes on from the newest snapshot and makes nothing twice. Without the flag it refuses to start
when it finds snapshots, because the first runner may still be alive. It also refuses when it finds none, and the fleet repo says that
there was a management cluster: the place of the snapshots may not be mounted.

With --environment NAME, or --management NAME --stand-alone, bootstrap makes a management cluster that has a parent in fleet.yaml, and
that needs no parent afterwards. Bootstrap makes the parent, and the parent makes the cluster for the new management cluster. The new
management cluster gets its own providers, and its own Flux, which follows its own folder. Then it takes over its own Cluster and, with
--environment, the other clusters that the parent has made in that environment. A push or --pr records the change in the fleet repo, and
the parent's folder records the run. This machine keeps access to the new management cluster. Bootstrap tears the parent down if it has
made the parent itself, and if the parent has no other clusters.

If fleet.yaml gives the new management cluster its own repository, its Flux follows this repository. Bootstrap makes the first commit there,
with new age keys. Give bootstrap access to the repository with --own-git-token-file. Of the environment variables, the new management
cluster gets only the variables that fleet.yaml names for it.

If bootstrap fails, it gathers a support bundle without secrets (see "fleetctl support-bundle") before it tears anything down: of the
parent, and of the new management cluster if this answers.

Bootstrap asks no questions. Exit codes: 0 everything is Ready; 1 a failure; 2 a mistake in the call; 3 something did not become Ready in
time; 130 interrupted. After every exit code, you can run bootstrap again.`,
		Example: `  fleetctl bootstrap --repo . --pivot-to platform -o json
  fleetctl bootstrap --environment prod        # makes the management cluster of prod with its parent, and removes the parent`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runBootstrap),
	}
	o.addFlags(f, c)
	c.Flags().StringVar(&b.PivotTo, "pivot-to", "", "workload cluster that becomes the management cluster, NAME or NAMESPACE/NAME")
	addKeepCredentials(c, &b.KeepCredentials)
	c.Flags().BoolVar(&b.SourceIsGone, "source-is-gone", false,
		"the machine of an earlier run is gone, and so is every management cluster that had its clusters: go on from the newest snapshot, "+
			"or from Git")
	c.Flags().StringVar(&b.KubeconfigOut, "kubeconfig-out", "", "file for the kubeconfig of the management cluster at the end of the run")
	c.Flags().StringVar(&b.SupportFile, "support-bundle", "",
		"file for the support bundle of a run that fails (default: one in the state folder)")
	c.Flags().DurationVar(&b.ClustersTimeout, "clusters-timeout", lifecycle.DefaultClustersTimeout,
		"how long the declared clusters may take to become Available")
	o.master.add(c)
	return c
}

func (o *bootstrapOptions) complete(f *factory, _ ...string) error {
	f.streams.InTerminal = false // ask no questions in a pipeline
	if o.bootstrap.KeepCredentials && o.bootstrap.PivotTo == "" {
		return diag.Usage("leave it out, or add --pivot-to", "--keep-credentials is for the cluster that takes over, and nothing says which does")
	}
	if err := o.initOptions.complete(f); err != nil {
		return err
	}
	o.SecretFiles = append(o.SecretFiles, o.master.ownTokenFile, o.master.ownFluxFile, o.master.own.Git.SSHKeyFile)
	o.bootstrap.Options, o.bootstrap.Ephemeral, o.bootstrap.Forge = o.Options, true, v1alpha1.ForgeType(o.master.forge)
	return o.master.complete(f, o.bootstrap)
}

func runBootstrap(ctx context.Context, f *factory, o *bootstrapOptions) error {
	if err := f.checkDeclared(o.bootstrap.PivotTo); err != nil {
		return err
	}
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
