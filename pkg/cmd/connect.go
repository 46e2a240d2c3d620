package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/connect"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// connectOptions are the flags of connect.
type connectOptions struct {
	connect.Options
	merge, forget bool
}

func newConnectCmd(f *factory) *cobra.Command {
	o := &connectOptions{}
	c := &cobra.Command{
		Use:   "connect",
		Short: "Give this machine access to a management cluster that another machine made",
		Long: `Give this machine access to a management cluster that a colleague's machine or a pipeline made. The access comes from
--kubeconfig or, if fleet.yaml names a parent of the management cluster, from this parent. After a pivot on this machine
and the deletion of the old host, connect needs neither. The cluster tells its fleet, and connect refuses a cluster of
another fleet. Nothing on the cluster is changed.

Afterwards status, init, upgrade, pivot, backup and all other commands work as on the machine that made the management
cluster. Only that other machine can start, stop and delete the host. connect copies the fleet's age keys to this
machine.

--forget also removes the context that connect has written to your own kubeconfig.`,
		Example: `  fleetctl connect --kubeconfig platform.kubeconfig
  fleetctl connect --management eu     # through the management cluster that fleet.yaml names as its parent
  fleetctl connect --forget            # nothing on the management cluster changes`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runConnect),
	}
	f.addManagement(c)
	c.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster (with --context alone: your own)")
	c.Flags().StringVar(&o.Context, "context", "", "context of the management cluster in the kubeconfig (default: the current one)")
	c.Flags().BoolVar(&o.merge, "merge-kubeconfig", false, "add a context for the management cluster to your own kubeconfig")
	c.Flags().BoolVar(&o.forget, "forget", false, "make this machine forget the management cluster")
	return c
}

func (o *connectOptions) complete(f *factory, _ ...string) (err error) {
	if o.forget && len(f.typedAmong([]string{"kubeconfig", "context"})) > 0 {
		return diag.Usage("leave one of them out", "--forget takes neither --kubeconfig nor --context")
	}
	if o.merge {
		o.MergeInto = userKubeconfig()
	}
	o.Cluster = f.flags.management
	o.Dir, err = f.repoDir()
	return err
}

func runConnect(ctx context.Context, f *factory, o *connectOptions) error {
	if o.forget {
		return disconnect(ctx, f)
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := connect.Connect(ctx, deps, o.Options)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Connect(result))
}

func disconnect(ctx context.Context, f *factory) error {
	target, err := f.actedTarget()
	if err != nil {
		return err
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	if err := connect.Disconnect(ctx, deps, target); err != nil {
		return err
	}
	f.closeReporter()
	ui.Fprintf(f.streams.Out, "This machine has forgotten the way to %s. Nothing there was changed.\n", target.Name)
	return nil
}
