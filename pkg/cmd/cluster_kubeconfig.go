package cmd

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
)

func newClusterKubeconfigCmd(f *factory) *cobra.Command {
	var merge bool
	var output string
	c := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Print the kubeconfig of a cluster that the fleet repo declares",
		Long: `Print the kubeconfig of the administrator of a cluster that the fleet repo declares. It is read from the management cluster, where Cluster API
keeps it; --output-file writes it to a private file instead, and --merge adds it to your own kubeconfig.`,
		Example: `  fleetctl cluster kubeconfig shop --output-file shop.kubeconfig
  kubectl --kubeconfig <(fleetctl cluster kubeconfig shop) get nodes
  fleetctl cluster kubeconfig prod/shop --merge`,
		RunE: func(c *cobra.Command, args []string) error {
			if merge && output != "" {
				return diag.Usage("give one of them", "--merge and --output-file were given")
			}
			repo, err := f.anyRepo()
			if err != nil {
				return err
			}
			cluster, err := f.anyCluster(c.Context(), args[0])
			if err != nil {
				return err
			}
			deps, err := f.deps()
			if err != nil {
				return err
			}
			target, err := management.Find(deps.Store, cluster.ManagementCluster, repo.Dir)
			if err != nil {
				return err
			}
			o := management.KubeconfigOptions{Target: target, Workload: cmp.Or(cluster.Namespace, cluster.Name) + "/" + cluster.Name, Declared: true, OutputFile: output}
			if merge {
				o.MergeInto = userKubeconfig()
			}
			content, err := management.Kubeconfig(c.Context(), o)
			if err != nil || merge || output != "" {
				return err
			}
			_, err = f.streams.Out.Write(content)
			return err
		},
	}
	f.addReach(c)
	c.Flags().BoolVar(&merge, "merge", false, "add it to your own kubeconfig instead of printing it")
	c.Flags().StringVar(&output, "output-file", "", "private file that it is written to instead of printing it")
	takes(f, c, ofCluster)
	return c
}
