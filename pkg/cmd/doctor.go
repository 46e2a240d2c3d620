package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	initOptions
	runCommands bool
}

func newDoctorCmd(f *factory) *cobra.Command {
	o := &doctorOptions{}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this machine and the fleet repo are ready for init",
		Long: `Run the checks that init runs before it creates anything. They look at the container engine, cgroups and inotify limits,
disk, ports, the Git remote and the right to push to it, the variables of the providers, and names that are taken. doctor also asks the
servers that init would download manifests from; with --bundle there are none. Each failure comes with its fix.

A fleet repo can name commands, for the variables of providers and in a kubeconfig. doctor runs them only with --run-commands. If fleet.yaml
names another Git server than the one the clone comes from, doctor sends a token to that server only with --run-commands, too.`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runDoctor),
	}
	o.addFlags(f, c)
	// The names of these flags in other commands that look at a management cluster.
	c.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of an existing host (also: --host-kubeconfig)")
	c.Flags().StringVar(&o.Context, "context", "", "context of an existing host (also: --host-context)")
	c.Flags().BoolVar(&o.runCommands, "run-commands", false,
		"run the commands that fleet.yaml and a kubeconfig in the fleet repo name; send tokens to the server that fleet.yaml names")
	return c
}

func (o *doctorOptions) complete(f *factory, _ ...string) error {
	o.NoCommands = !o.runCommands
	return o.initOptions.complete(f)
}

func runDoctor(ctx context.Context, f *factory, o *doctorOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	report, err := lifecycle.Doctor(ctx, deps, o.Options)
	if err != nil {
		return err
	}
	if err := f.show(views.Doctor(report)); err != nil {
		return err
	}
	if report.Failed > 0 {
		return silent()
	}
	return nil
}
