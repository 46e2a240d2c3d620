package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// kubeconfigOptions are the flags of kubeconfig.
type kubeconfigOptions struct {
	// workload is empty for the management cluster itself.
	workload string
	merge    bool
}

func (o *kubeconfigOptions) complete(f *factory, args ...string) error {
	if len(args) > 0 {
		o.workload = args[0]
	}
	return f.refuseFormat(kubeconfigFormat, ui.YAML)
}

// kubeconfigFormat says why a kubeconfig has one format only.
const kubeconfigFormat = "a kubeconfig is YAML"

func newKubeconfigCmd(f *factory) *cobra.Command {
	o := &kubeconfigOptions{}
	c := &cobra.Command{
		Use:   "kubeconfig [NAMESPACE/CLUSTER]",
		Short: "Print the kubeconfig of the management cluster or of a workload cluster",
		Long: `Print the kubeconfig of the management cluster or, with an argument, of a workload cluster. Name the workload cluster by its
name, or by namespace/name if several have the same name.`,
		Example: `  fleetctl kubeconfig > mgmt.kubeconfig
  kubectl --kubeconfig <(fleetctl kubeconfig edge-1) get nodes
  fleetctl kubeconfig --merge`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeWorkloadClusters,
		RunE:              running(f, o, runKubeconfig),
	}
	f.addManagement(c)
	doesWithout(c, findsOneOf)
	f.addReach(c)
	c.Flags().BoolVar(&o.merge, "merge", false, "add it to your own kubeconfig instead of printing it")
	return c
}

func runKubeconfig(ctx context.Context, f *factory, o *kubeconfigOptions) error {
	w := workload{}
	var err error
	if o.workload != "" {
		if w, err = f.findWorkload(o.workload); err != nil {
			return err
		}
	}
	target, err := w.target(f, management.FindDeclared)
	if err != nil {
		return err
	}
	options := management.KubeconfigOptions{Target: target, Workload: w.name, Declared: w.declared != nil}
	return printKubeconfig(ctx, f, options, o.merge)
}

// printKubeconfig prints a kubeconfig, or writes it to a file, or with merge adds it to the user's own.
func printKubeconfig(ctx context.Context, f *factory, o management.KubeconfigOptions, merge bool) error {
	if merge {
		o.MergeInto = userKubeconfig()
	}
	content, err := management.Kubeconfig(ctx, o)
	if err != nil || merge || o.OutputFile != "" {
		return err
	}
	_, err = f.streams.Out.Write(content)
	return err
}
