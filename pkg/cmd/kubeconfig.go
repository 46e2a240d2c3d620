package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/management"
)

func newKubeconfigCmd(f *factory) *cobra.Command {
	var merge bool
	c := &cobra.Command{
		Use:   "kubeconfig [NAMESPACE/CLUSTER]",
		Short: "Print the kubeconfig of the management cluster or of a workload cluster",
		Long: `Print a kubeconfig. Without an argument it is the management cluster's; with one it is that of a workload cluster, named by its
name, or by namespace/name where the name alone is not enough.`,
		Example: `  fleetctl kubeconfig > mgmt.kubeconfig
  kubectl --kubeconfig <(fleetctl kubeconfig edge-1) get nodes
  fleetctl kubeconfig --merge`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeWorkloadClusters,
		RunE: func(c *cobra.Command, args []string) error {
			target, err := f.declaredTarget()
			if err != nil {
				return err
			}
			o := management.KubeconfigOptions{Target: target}
			if len(args) > 0 {
				o.Workload = args[0]
			}
			if merge {
				o.MergeInto = userKubeconfig()
			}
			content, err := management.Kubeconfig(c.Context(), o)
			if err != nil || merge {
				return err
			}
			_, err = f.streams.Out.Write(content)
			return err
		},
	}
	f.addManagement(c)
	f.addReach(c)
	c.Flags().BoolVar(&merge, "merge", false, "add it to your own kubeconfig instead of printing it")
	return c
}
