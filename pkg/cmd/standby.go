package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/views"
)

var ofStandby = argument{what: "standby", choices: func(r *fleetrepo.Repo, _ []string) []string { return r.StandbyNames() }}

func newStandbyCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "standby", Short: "Keep a second management cluster ready, and have it take over",
		Long: `A standby is a second cluster with all that a management cluster has: its providers in the same versions, and Flux. It follows Git and the snapshots, and does
nothing: its providers are stopped, and its API server denies all writes to what they act on. On the day that the management cluster is lost, one command has
the standby take over with the last snapshot.

fleetctl init --management NAME makes it, and brings it to other versions later. fleetctl status --management NAME shows it, fleetctl teardown --management NAME
removes it.`,
	}
	c.AddCommand(newStandbyAddCmd(f), newStandbyRemoveCmd(f), newStandbyRefreshCmd(f), newStandbyActivateCmd(f))
	return c
}

// standbyAddOptions are the flags of standby add.
type standbyAddOptions struct {
	changeFlags
	wanted      v1alpha1.Standby
	hostContext string
}

func (o *standbyAddOptions) complete(_ *factory, args ...string) error {
	o.wanted.Name = args[0]
	if o.hostContext != "" {
		o.wanted.Host.Existing = &v1alpha1.ExistingHost{Context: o.hostContext}
	}
	return nil
}

func (o *standbyAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	if o.wanted.Of == "" {
		m, err := r.Fleet.ManagementCluster("")
		if err != nil {
			return nil, diag.Usage("name it with --of", "the fleet has several management clusters, and nothing says which one the standby is of")
		}
		o.wanted.Of = m.Name
	}
	return r.AddStandby(o.wanted)
}

func newStandbyAddCmd(f *factory) *cobra.Command {
	o := &standbyAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Declare a standby",
		Long: `Declare a standby of a management cluster in fleet.yaml: a name and a host. All else is that of the management cluster. ` + "`fleetctl init --management NAME`" + `
makes it.` + editing,
		Example: `  fleetctl standby add spare --host embedded --push
  fleetctl standby add spare --of platform --host existing --host-context spare --push`,
		RunE: running(f, o, runEdit),
	}
	fs := c.Flags()
	fs.StringVar(&o.wanted.Of, "of", "", "management cluster that it takes over from (default: the only one of the fleet)")
	completeFlag(c, "of", f.completeFrom(-1, ofManagement.choices))
	fs.StringVar((*string)(&o.wanted.Host.Type), "host", "", "what carries it: "+hostNames()+" (default: what init finds)")
	completeFlag(c, "host", cobra.FixedCompletions(hostTypes(), cobra.ShellCompDirectiveNoFileComp))
	fs.StringVar(&o.hostContext, "host-context", "", "context of an existing cluster")
	o.add(c)
	takes(f, c, argument{what: "standby"})
	return c
}

func newStandbyRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short:   "Remove a standby from fleet.yaml",
		Long:    `Take a standby out of fleet.yaml. The cluster itself is not deleted: ` + "`fleetctl teardown --management NAME`" + ` does that, before this.` + editing,
		Example: "  fleetctl standby remove spare --push",
	}, ofStandby, (*fleetrepo.Repo).RemoveStandby)
}

func newStandbyRefreshCmd(f *factory) *cobra.Command {
	o := &drillOptions{}
	c := &cobra.Command{
		Use:   "refresh NAME",
		Short: "Try the last snapshot on a standby, and note there what was seen",
		Long: `Hold the last snapshot of the management cluster against Git and what is at hand here, restore it into the standby up to where that would take over, compare
every object with the snapshot, and take the copies away again. No controller acts on them at any moment. The standby keeps what was seen: status shows it, with
the age of the snapshot. Run it from a timer, on the machine that would activate the standby.

When it is interrupted, the next run takes away what is left.

Exit codes: 0 the standby could take over; 3 something was found that would keep it from that; 1 the command itself failed.`,
		Example: `  fleetctl standby refresh spare
  fleetctl standby refresh spare --max-age 24h`,
		RunE: running(f, o, runStandbyRefresh),
	}
	o.addDrillFlags(c)
	takes(f, c, ofStandby)
	return c
}

func runStandbyRefresh(ctx context.Context, f *factory, o *drillOptions) error {
	return o.run(ctx, f, pivot.RefreshStandby)
}

// standbyActivateOptions are the flags of standby activate.
type standbyActivateOptions struct {
	initOptions
	activate pivot.ActivateOptions
}

func newStandbyActivateCmd(f *factory) *cobra.Command {
	o := &standbyActivateOptions{}
	a := &o.activate
	c := &cobra.Command{
		Use:   "activate NAME",
		Short: "Have a standby take over from its management cluster",
		Long: `Have a standby take over from the management cluster that it is a standby of. It gets the objects of the last snapshot while no controller can act on them, every
object is compared with the snapshot, and the standby takes over in one write. Then its fence goes, its providers begin and find their machines again, and Flux follows
the folder of the lost management cluster. In fleet.yaml the standby stands in its place from then on: with its own name and host, and all else as it was.

The management cluster must be gone. It is asked first, and where it answers, the command refuses. Where it does not answer, only you know whether it is gone: say so
with --source-is-gone. With --hand-over the standby takes the work over from a management cluster that lives, without a snapshot, as a pivot does.

It can be interrupted at any moment, and the same command goes on. Before the standby has taken over, --abort leaves a standby behind, as it was; where the management
cluster is lost in the middle of a --hand-over, --abort --source-is-gone does.

Exit codes: 0 it has taken over; 3 something was not ready in time, run it again.`,
		Example: `  fleetctl standby activate spare --dry-run
  fleetctl standby activate spare --source-is-gone
  fleetctl standby activate spare --hand-over
  fleetctl standby activate spare --abort`,
		RunE: running(f, o, runStandbyActivate),
	}
	o.addRunFlags(c)
	addPlaceFlag(c, &a.From, "from")
	fs := c.Flags()
	fs.DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	fs.StringVar(&a.Snapshot, "snapshot", "", "ID of the snapshot (default: the newest)")
	fs.BoolVar(&a.SourceIsGone, "source-is-gone", false, "the management cluster does not act any more, and never will")
	fs.BoolVar(&a.HandOver, "hand-over", false, "take the work over from a management cluster that lives")
	fs.BoolVar(&a.PauseElsewhere, "pause-elsewhere", false, "bring clusters back paused that say themselves that another management cluster has them by now")
	fs.BoolVar(&a.DryRun, "dry-run", false, "say what the standby would take over; change nothing")
	fs.BoolVar(&a.Abort, "abort", false, "undo an activation that has not taken over yet")
	takes(f, c, ofStandby)
	return c
}

func (o *standbyActivateOptions) complete(f *factory, args ...string) (err error) {
	a := &o.activate
	switch {
	case a.Abort && a.DryRun:
		return errAbortDryRun
	case a.HandOver && (a.SourceIsGone || a.Snapshot != "" || a.From != "" || a.PauseElsewhere):
		return diag.Usage("leave one of them out", "--hand-over takes the work from a management cluster that lives, and no snapshot")
	}
	if err := o.initOptions.complete(f); err != nil {
		return err
	}
	a.Options = o.Options
	a.Cluster = args[0]
	a.From, err = absolute(a.From)
	return err
}

func runStandbyActivate(ctx context.Context, f *factory, o *standbyActivateOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := pivot.ActivateStandby(ctx, deps, o.activate)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Activation(result))
}
