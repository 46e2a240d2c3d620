package cmd

import (
	"github.com/spf13/cobra"
)

func newUpgradeCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade what runs on a management cluster: Cluster API, its providers, cert-manager and Flux",
		Long: `Upgrade what runs on a management cluster. fleet.yaml says which versions that are; apply brings the cluster to them.

Kubernetes on workload clusters is another matter: see fleetctl cluster upgrade.`,
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
		Long: `Bring a management cluster to the versions of fleet.yaml. It is fleetctl init for a management cluster that is there: it refuses to make one.

What belongs to the Clusters is kept first, Secrets included, in a private file of this machine. Then cert-manager is upgraded, and the providers in
Cluster API's order: core, bootstrap, control plane, infrastructure. Each has to be healthy before the next one is touched; where one does not get
healthy it stops there. Run it again at any time, after a failure or a kill too: it goes on where it was. Clusters go on running meanwhile; nothing
looks after them for the seconds in which a provider is replaced.

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
