package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/management"
)

// hostExecOptions are the flags of host exec.
type hostExecOptions struct{ management.HostExecOptions }

func (o *hostExecOptions) complete(f *factory, args ...string) error {
	if err := f.refuseFormat("the command's output is printed as it is"); err != nil {
		return err
	}
	o.Command = args
	raw := f.streams.Raw() // the command's output goes to the user as it is
	o.Stdin, o.Stdout, o.Stderr = raw.In, raw.Out, raw.Err
	return nil
}

func runHostExec(ctx context.Context, f *factory, o *hostExecOptions) error {
	f.setGrace(cleanUpTime)
	deps, err := f.deps()
	if err != nil {
		return err
	}
	return management.HostExec(ctx, deps, o.HostExecOptions)
}

func newHostExecCmd(f *factory) *cobra.Command {
	o := &hostExecOptions{}
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command with an ephemeral management cluster",
		Long: `Run a command with an ephemeral, empty management cluster: an embedded host that starts in seconds. The command's KUBECONFIG
reaches this cluster. When the command ends, for whatever reason, fleetctl deletes the host with everything on it.

The exit code is the command's.`,
		Example: `  fleetctl host exec -- kubectl apply --dry-run=server -f crds.yaml
  fleetctl host exec --bundle fleet-bundle.tar.zst -- ./integration-tests.sh`,
		Args:              cobra.MinimumNArgs(1),
		RunE:              running(f, o, runHostExec),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().SetInterspersed(false) // flags after the command belong to the command
	c.Flags().StringVar(&o.Bundle, "bundle", "", "offline bundle, a folder or a .tar.zst: no network is needed")
	c.Flags().StringVar(&o.KubernetesVersion, "kubernetes-version", "",
		"its Kubernetes version (default: the newest in the bundle, else the newest that this fleetctl knows)")
	return c
}
