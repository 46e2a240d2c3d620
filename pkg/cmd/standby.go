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
		Use: "standby", Short: "Keep a second management cluster ready, and let it take over",
		Long: `A standby is a second cluster with Flux and the same providers, in the same versions, as a management cluster. It
fetches Git and does nothing: its providers are stopped, and its API server denies all writes to the providers'
objects. When the management cluster is lost, fleetctl standby activate lets the standby take over with the last
snapshot.

fleetctl init --management NAME makes a standby, and a later run upgrades it. fleetctl status --management NAME shows it,
and fleetctl teardown --management NAME removes it.`,
	}
	c.AddCommand(newStandbyAddCmd(f), newStandbyListCmd(f), newStandbyRemoveCmd(f), newStandbyRefreshCmd(f), newStandbyActivateCmd(f))
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
	if o.wanted.Of == "" && r.Fleet.Standby(o.wanted.Name) == nil {
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
		Long: `Declare a standby of a management cluster in fleet.yaml, with a name and a host. It takes all other settings from the
management cluster.
` + "`fleetctl init --management NAME`" + ` makes the standby.` + editing,
		Example: `  fleetctl standby add spare --host embedded --push
  fleetctl standby add spare --of platform --host existing --host-context spare --push`,
		RunE: running(f, o, runEdit),
	}
	fs := c.Flags()
	fs.StringVar(&o.wanted.Of, "of", "", "management cluster that the standby takes over from (default: the only one of the fleet)")
	completeFlag(c, "of", f.completeFrom(-1, ofManagement.choices))
	fs.StringVar((*string)(&o.wanted.Host.Type), "host", "", "kind of the host: "+hostNames()+" (default: what init finds)")
	completeFlag(c, "host", cobra.FixedCompletions(hostTypes(), cobra.ShellCompDirectiveNoFileComp))
	fs.StringVar(&o.hostContext, "host-context", "", "context of an existing cluster")
	o.add(c)
	takes(f, c, argument{what: "standby"})
	return c
}

func newStandbyListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "standby", "List the standbys that fleet.yaml declares", (*fleetrepo.Repo).Standbys, views.Standbys)
}

func newStandbyRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short: "Remove a standby from fleet.yaml",
		Long: `Remove a standby from fleet.yaml. This does not delete the cluster: first run ` + "`fleetctl teardown --management NAME`" +
			`.` + editing,
		Example: "  fleetctl standby remove spare --push",
	}, ofStandby, (*fleetrepo.Repo).RemoveStandby)
}

func newStandbyRefreshCmd(f *factory) *cobra.Command {
	o := &drillOptions{}
	c := &cobra.Command{
		Use:   "refresh NAME",
		Short: "Test on a standby whether it could take over with the last snapshot",
		Long: `Test whether a standby could take over with the last snapshot of the management cluster. The command compares the
snapshot with Git and with the keys and credentials of this machine. It restores the snapshot into the standby without
letting the standby take over, compares every object, and removes the copies again. No controller acts on the copies.
The standby stores the result, and status shows it with the age of the snapshot. Run the command from a timer, on the
machine that would activate the standby.

After an interruption, the next run removes the remaining copies.

Exit codes: 0 the standby could take over; 3 the standby could not take over; 1 the command itself failed.`,
		Example: `  fleetctl standby refresh spare
  fleetctl standby refresh spare --max-age 24h`,
		RunE: running(f, o, runStandbyRefresh),
	}
	o.addDrillFlags(c)
	takes(f, c, ofStandby)
	return c
}

func runStandbyRefresh(ctx context.Context, f *factory, o *drillOptions) error {
	f.setGrace(cleanUpTime)
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
		Short: "Let a standby take over from its management cluster",
		Long: `Let a standby take over from its management cluster. The command creates the objects of the last snapshot on the
standby while no controller can act on them, and compares every object with the snapshot. Then the standby takes over
in one write. Its providers start and find their machines again, and Flux follows the folder of the lost management
cluster. In fleet.yaml the standby, with its own name and host, replaces the lost management cluster; all other fields
stay.

The management cluster must be gone. The command asks it first, and refuses if it answers. If it does not answer, only
you know whether it is gone: confirm this with --source-is-gone. With --hand-over, the standby takes the work over
from a management cluster that lives, without a snapshot, as a pivot does.

You can interrupt the command at any moment, and the same command goes on. Before the standby has taken over, --abort makes it a standby
again. If the management cluster is lost in the middle of --hand-over, use --abort --source-is-gone.

Exit codes: 0 the standby has taken over; 3 something was not ready in time, run it again.`,
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
	fs.BoolVar(&a.SourceIsGone, "source-is-gone", false, "the management cluster is gone, and will never act again")
	fs.BoolVar(&a.HandOver, "hand-over", false, "take the work over from a management cluster that lives")
	fs.BoolVar(&a.PauseElsewhere, "pause-elsewhere", false,
		"restore a cluster paused if another management cluster owns it, as its own record or the fleet repo says")
	fs.BoolVar(&a.AcceptDeletions, "accept-deletions", false, acceptDeletionsHelp)
	fs.BoolVar(&a.DryRun, "dry-run", false, "show what the standby would take over, and change nothing")
	fs.BoolVar(&a.Abort, "abort", false, "undo an activation before the standby has taken over")
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
