package cmd

import (
	"github.com/spf13/cobra"
)

func newUpgradeCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade Cluster API, its providers, cert-manager and Flux on a management cluster",
		Long: `Upgrade Cluster API, its providers, cert-manager and Flux on a management cluster. fleet.yaml declares the versions, and
apply brings the cluster to them.

To upgrade Kubernetes on a workload cluster, use fleetctl cluster upgrade.`,
		Example: `  fleetctl upgrade plan
  fleetctl upgrade apply`,
	}
	c.AddCommand(newUpgradePlanCmd(f), newUpgradeApplyCmd(f))
	return c
}

func newUpgradeApplyCmd(f *factory) *cobra.Command {
	o := &initOptions{}
	o.UpgradeOnly = true
	c := &cobra.Command{
		Use:   "apply",
		Short: "Bring a management cluster to the versions of fleet.yaml",
		Long: `Bring a management cluster to the versions of fleet.yaml. The command does the same as fleetctl init, but refuses to make a
new management cluster.

First it saves all objects of the Clusters, Secrets included, in a private file on this machine. Then it upgrades cert-manager, and the
providers in Cluster API's order: core, bootstrap, control plane, infrastructure. Each has to be healthy before the next one is touched; if
one does not become healthy, the upgrade stops there. Run the command again at any time, also after a failure or a kill: it goes on where it
stopped. The workload clusters keep running; only while a provider is replaced, for some seconds, nothing manages them.

There is no way back to an older version of a provider.`,
		Example: `  fleetctl upgrade apply --dry-run
  fleetctl upgrade apply
  fleetctl upgrade apply --bundle fleet-bundle.tar.zst`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runInit),
	}
	f.addManagement(c)
	o.addRunFlags(c)
	o.addDryRun(c)
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	return c
}
