package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/checkup"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// drillOptions are the flags of drill, and of standby refresh, which is a drill on a standby.
type drillOptions struct {
	initOptions
	drill pivot.DrillOptions
}

func newDrillCmd(f *factory) *cobra.Command {
	o := &drillOptions{}
	c := &cobra.Command{
		Use:   "drill",
		Short: "Test on a temporary host whether the last snapshot could be restored",
		Long: `Restore the last snapshot into a temporary embedded host, with everything fenced, and report whether a real restore would
work. The drill checks that your keys open the snapshot, that the API server stores its objects, that all objects arrive unchanged, and that
the snapshot has the clusters that Git declares. The report also names what a restore needs beyond Git and the snapshot. At the end the host
is deleted.

The drill touches neither the management cluster nor a cloud nor Git. No controller ever acts on the copies, and the
providers get worthless values instead of credentials. It needs no container engine.

Exit codes: 0 a restore would work; 3 the drill found something that would keep a restore from working; 1 the drill itself failed.`,
		Example: `  fleetctl drill
  fleetctl drill --max-age 24h           # each night, in a pipeline
  fleetctl drill --from oci://registry.example.com/acme/snapshots --bundle bundle.tar.zst`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runDrill),
	}
	f.addManagement(c)
	o.addDrillFlags(c)
	o.addBundleFlag(c)
	c.Flags().StringSliceVar(&o.SkipPreflight, "skip-preflight", nil,
		"preflight check that may fail: "+checkup.Downloads+", the only one that a drill makes")
	return c
}

func (o *drillOptions) addDrillFlags(c *cobra.Command) {
	d := &o.drill
	o.addAccessFlags(c)
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	addPlaceFlag(c, &d.From, "from")
	c.Flags().StringVar(&d.Snapshot, "snapshot", "", "the snapshot to try (default: the newest)")
	c.Flags().DurationVar(&d.MaxAge, "max-age", 0, "report an older snapshot as a fault, such as 24h")
}

func (o *drillOptions) complete(f *factory, args ...string) (err error) {
	if o.drill.MaxAge < 0 {
		return diag.Usage("give a duration such as 24h", "--max-age %s is negative", o.drill.MaxAge)
	}
	if err := checkup.CheckNames(o.SkipPreflight); err != nil {
		return err
	}
	for _, name := range o.SkipPreflight {
		if name != checkup.Downloads && !f.settings.FromOutside("skip-preflight") {
			return diag.Usage("leave it out; a drill makes only the check "+checkup.Downloads, "--skip-preflight %s has no effect", name)
		}
	}
	if err := o.initOptions.complete(f); err != nil {
		return err
	}
	o.drill.Options = o.Options
	if len(args) > 0 { // the standby
		o.drill.Cluster = args[0]
	}
	o.drill.From, err = absolute(o.drill.From)
	return err
}

func runDrill(ctx context.Context, f *factory, o *drillOptions) error {
	f.setGrace(cleanUpTime)
	return o.run(ctx, f, pivot.Drill)
}

func (o *drillOptions) run(
	ctx context.Context, f *factory, try func(context.Context, management.Deps, pivot.DrillOptions) (*pivot.DrillResult, error),
) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := try(ctx, deps, o.drill)
	if err != nil {
		return err
	}
	f.closeReporter()
	if err := f.show(views.Drill(result)); err != nil {
		return err
	}
	if !result.Works {
		return silent()
	}
	return nil
}
