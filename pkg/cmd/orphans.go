package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// orphansOptions are the flags of orphans.
type orphansOptions struct {
	asGiven
	regions     []string
	runCommands bool
	timeout     time.Duration
}

func newOrphansCmd(f *factory) *cobra.Command {
	o := &orphansOptions{}
	c := listFormats(&cobra.Command{
		Use:   "orphans",
		Short: "List what a cloud still holds of the fleet's clusters and nobody manages any more",
		Long: `List the resources of a cloud that belonged to the fleet's clusters and that no management cluster that answers owns: machines that run, and cost money, after
their management cluster is gone. The cloud is asked with the credentials that "fleetctl init" gives its provider, in every region of the account. Nothing is
changed.

A resource belongs to this fleet where it has the tag ` + v1alpha1.FleetTag + `, which clusters of "fleetctl cluster add" have, or is in a network with this tag. A resource
with the tags of a cluster but of no fleet is listed with proof "none": it may be another fleet's. Resources with another fleet's tag are counted and not
shown.

Look into each resource before you delete it; no command deletes it. The tags may be those of a copied fleet repo, of a cluster that was detached, or of a
network that others use.

Exit codes: 0 there are none, and everything was asked; 3 there are some, or something could not be asked.`,
		Example: `  fleetctl orphans
  fleetctl orphans --region eu-central-1 -o json`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runOrphans),
	})
	fs := c.Flags()
	fs.StringSliceVar(&o.regions, "region", nil, "ask this region alone; repeat for several (default: all of the account)")
	fs.BoolVar(&o.runCommands, "run-commands", false, "run the commands of fleet.yaml that print credentials")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "give up after this time")
	return c
}

func runOrphans(ctx context.Context, f *factory, o *orphansOptions) error {
	report, err := f.findOrphans(ctx, o)
	if err != nil {
		return err
	}
	f.closeReporter()
	if err := f.show(views.Orphans(report, time.Now())); err != nil {
		return err
	}
	if report.Count() > 0 || !report.Complete {
		return silent()
	}
	return nil
}

func (f *factory) findOrphans(ctx context.Context, o *orphansOptions) (*orphans.Report, error) {
	repo, err := f.fleetRepo()
	if err != nil {
		return nil, err
	}
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	deps, err := f.deps()
	if err != nil {
		return nil, err
	}
	targets, err := f.allTargets()
	if err != nil {
		return nil, err
	}
	return lifecycle.Orphans(ctx, deps, lifecycle.OrphansOptions{
		Repo: repo, Dir: dir, Targets: targets, Regions: o.regions, RunCommands: o.runCommands, Timeout: o.timeout,
	})
}
