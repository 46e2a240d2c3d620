package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// kubeconfigFlags say where a kubeconfig goes.
type kubeconfigFlags struct {
	merge  bool
	output string
}

func (o *kubeconfigFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&o.merge, "merge", false, "add it to your own kubeconfig instead of printing it")
	c.Flags().StringVar(&o.output, "output-file", "", "private file to write the kubeconfig to, instead of printing it")
}

func (o *kubeconfigFlags) check(f *factory) error {
	if o.merge && o.output != "" {
		return diag.Usage("give one of them", "--merge and --output-file were given")
	}
	return f.refuseFormat("a kubeconfig is YAML", ui.YAML)
}

// kubeconfigOptions are the flags of kubeconfig.
type kubeconfigOptions struct {
	kubeconfigFlags
	// workload is empty for the management cluster itself.
	workload string
}

func (o *kubeconfigOptions) complete(f *factory, args ...string) error {
	if len(args) > 0 {
		o.workload = args[0]
	}
	return o.check(f)
}

func newKubeconfigCmd(f *factory) *cobra.Command {
	o := &kubeconfigOptions{}
	c := &cobra.Command{
		Use:   "kubeconfig [NAMESPACE/CLUSTER]",
		Short: "Print the kubeconfig of the management cluster or of a workload cluster",
		Long: `Print the kubeconfig of the management cluster or, with an argument, of a workload cluster. Name the workload cluster by its
name, or by namespace/name if several have the same name. --output-file writes it to a private file instead, and --merge adds it to your own
kubeconfig.`,
		Example: `  fleetctl kubeconfig --output-file mgmt.kubeconfig
  kubectl --kubeconfig <(fleetctl kubeconfig edge-1) get nodes
  fleetctl kubeconfig --merge`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeWorkloadClusters,
		RunE:              running(f, o, runKubeconfig),
	}
	f.addManagement(c)
	doesWithout(c, findsOneOf)
	f.addReach(c)
	o.add(c)
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
	return o.print(ctx, f, options)
}

// print prints a kubeconfig, writes it to a file, or adds it to the user's own.
func (o *kubeconfigFlags) print(ctx context.Context, f *factory, of management.KubeconfigOptions) error {
	of.OutputFile = o.output
	if o.merge {
		of.MergeInto = userKubeconfig()
	}
	content, err := management.Kubeconfig(ctx, of)
	if err != nil || o.merge || o.output != "" {
		return err
	}
	_, err = f.streams.Out.Write(content)
	return err
}
