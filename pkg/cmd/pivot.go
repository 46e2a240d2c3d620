package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// errBothGone is the error of pivot and cluster transfer if both flags are given.
var errBothGone = diag.Usage("`fleetctl restore` makes a management cluster of the last snapshot",
	"with both sides gone there is nothing to undo: leave out --source-is-gone or --without-target")

// pivotOptions are the flags of pivot.
type pivotOptions struct {
	initOptions
	pivot pivot.MoveOptions
}

func newPivotCmd(f *factory) *cobra.Command {
	o := &pivotOptions{}
	p := &o.pivot
	c := &cobra.Command{
		Use:   "pivot",
		Short: "Hand the work of a management cluster to another one",
		Long: `Hand everything that a management cluster manages to another cluster, which becomes the management cluster. The target
is one of its own workload clusters (--to), or any cluster that a kubeconfig reaches (--to-kubeconfig).

fleetctl installs the same providers and Flux at the target, and that Flux fetches the fleet repo once. Then fleetctl
fences the source, copies the objects of all namespaces with their status, and compares both sides. With server-side
dry runs, it tests what the target's Flux would do: the pivot stops if the API server refuses an object, or if Flux
would delete one. Then a single write hands the work over. Only after this write does the target start to act, and only
then are the objects removed from the source. On a target in AWS, it then takes the static AWS credentials off the
target, if the provider reaches AWS without them: by the role of the machines. --keep-credentials leaves them there.
The credentials of other clouds stay on the target; a warning for each provider names them, and says what to do.

You can interrupt the command at any moment. A journal on both sides records the phase. Run the same command again, on
any machine that reaches either side, and it goes on from there. After the hand-over it goes on even if the source is
gone. Before the hand-over, --abort undoes the pivot: the source goes on as before, and the copies are removed without
touching a machine.

--dry-run changes nothing. It counts the objects to hand over, names the objects that cannot be handed over, and tells
what the pivot would wait for. It also tests what the target's Flux would do with what the Git remote has.

Exit codes: 0 the target has taken over; 3 something was not ready in time, run it again.`,
		Example: `  fleetctl pivot --to platform --dry-run
  fleetctl pivot --to platform
  fleetctl pivot                # goes on after an interruption
  fleetctl pivot --abort        # undoes the pivot
  fleetctl pivot --abort --without-target    # if the target is gone for good
  fleetctl pivot --abort --source-is-gone --to-kubeconfig FILE    # if the source is gone for good`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runPivot),
	}
	f.addManagement(c)
	o.addRunFlags(c)
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	c.Flags().StringVar(&p.To, "to", "", "workload cluster that takes over, NAME or NAMESPACE/NAME")
	c.Flags().StringVar(&p.ToKubeconfig, "to-kubeconfig", "",
		"kubeconfig of the cluster that takes over, if it is not a workload cluster of the source")
	c.Flags().BoolVar(&p.Abort, "abort", false, "undo a hand-over before the target has taken over")
	c.Flags().BoolVar(&p.WithoutTarget, "without-target", false, "with --abort: the target is gone, so remove nothing there")
	c.Flags().BoolVar(&p.SourceIsGone, "source-is-gone", false,
		"with --abort: the source is gone, and will never act again: remove from the target what the hand-over has made there")
	addKeepCredentials(c, &p.KeepCredentials)
	c.Flags().BoolVar(&p.DryRun, "dry-run", false, "show what would be handed over, and change nothing")
	return c
}

// addKeepCredentials defines the flag of the commands that hand work over to a cluster in a cloud.
func addKeepCredentials(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "keep-credentials", false,
		"leave the providers' credentials on the target; without it, a provider in its own cloud loses the one that the machines' role replaces")
}

func (o *pivotOptions) complete(f *factory, _ ...string) error {
	if o.pivot.Abort && o.pivot.DryRun {
		return errAbortDryRun
	}
	if o.pivot.To != "" && o.pivot.ToKubeconfig != "" {
		return diag.Usage("leave one of them out", "--to and --to-kubeconfig both name the cluster that takes over")
	}
	if o.pivot.SourceIsGone && o.pivot.WithoutTarget {
		return errBothGone
	}
	if o.pivot.WithoutTarget && !o.pivot.Abort {
		return diag.Usage("add --abort", "--without-target is for an abort")
	}
	if o.pivot.KeepCredentials && o.pivot.Abort {
		return diag.Usage("leave it out", "--keep-credentials is for a pivot that ends at the target, and --abort undoes it")
	}
	if o.pivot.SourceIsGone && !o.pivot.Abort {
		return diag.Usage("leave it out: once the target has taken over, the same command finishes it without the source. To undo what has "+
			"begun, add --abort",
			"--source-is-gone is for an abort")
	}
	if err := o.initOptions.complete(f); err != nil {
		return err
	}
	o.pivot.Options = o.Options
	return nil
}

func runPivot(ctx context.Context, f *factory, o *pivotOptions) error {
	if err := f.checkDeclared(o.pivot.To); err != nil {
		return err
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := pivot.Pivot(ctx, deps, o.pivot)
	if result == nil {
		return err
	}
	f.closeReporter()
	return errors.Join(err, f.show(views.Pivot(result)))
}
