package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newChartCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "chart", Short: "List, add, update and remove the charts of the fleet repo: one per flavour of cluster",
		Long: `The charts in charts/ are copies that belong to the team: it may change them as it likes. fleet.lock remembers what fleetctl brought, so that a
newer fleetctl can bring what is new without losing what the team has changed. A chart for any other provider is made of a cluster template.`,
	}
	c.AddCommand(newChartAddCmd(f), newChartListCmd(f), newChartUpdateCmd(f), newChartRemoveCmd(f))
	return c
}

func newChartListCmd(f *factory) *cobra.Command {
	c := newListCmd(f, "chart", "List the charts, where they come from, and whether this fleetctl has something new for them", (*fleetrepo.Repo).Charts, views.Charts)
	c.Long = `List the charts, where they come from, and whether this fleetctl has something new for them.

current  it has all that this fleetctl brings, and what the team has made of it
behind   this fleetctl brings something new: ` + "`fleetctl chart update`" + `
ahead    a newer fleetctl than this one has brought it
own      the team's: fleetctl brings none of that name, or fleet.lock does not say what of it came from fleetctl`
	return c
}

// chartUpdateOptions are the flags of chart update.
type chartUpdateOptions struct {
	changeFlags
	charts []string
	prefer fleetrepo.Prefer
}

func (o *chartUpdateOptions) complete(_ *factory, args ...string) error {
	o.charts = args
	switch o.prefer {
	case fleetrepo.PreferNobody, fleetrepo.PreferTeam, fleetrepo.PreferFleetctl:
		return nil
	}
	return diag.Usage("give --prefer team or --prefer fleetctl", "--prefer %q is neither team nor fleetctl", string(o.prefer))
}

func runChartUpdate(ctx context.Context, f *factory, o *chartUpdateOptions) error {
	return runChange(ctx, f, &o.changeFlags, change.Options{Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		return r.UpdateCharts(o.charts, o.prefer, change.ChartHistory(ctx, r.WorkTree))
	}})
}

func newChartUpdateCmd(f *factory) *cobra.Command {
	o := &chartUpdateOptions{}
	c := &cobra.Command{
		Use:   "update [CHART…]",
		Short: "Bring what is new in this fleetctl into charts, and keep what the team has changed",
		Long: `Bring what is new in this fleetctl into charts: those named, or all that fleetctl has brought. What the team has changed stays: it is merged line
by line, from what fleet.lock says that fleetctl brought, as Git has it. Where both have changed the same lines, nothing is written and all of
them are listed; --prefer team or --prefer fleetctl decides for those lines, and all else is merged.

A chart of the team's own that has the name of one of fleetctl's is updated when it is named. Where Git has it as this fleetctl brings it, that is
what the team began with; else every file that differs is listed, and --prefer decides for the whole of it.

The clusters of these charts are rendered with what comes of it. Those that worked before and then would not are named, and keep --commit and --push
from going on: their values have to change in the same commit.` + editing,
		Example: `  fleetctl chart update --dry-run
  fleetctl chart update aws-eks --prefer team --pr`,
		ValidArgsFunction: f.completeFrom(-1, func(r *fleetrepo.Repo, _ []string) []string { return r.Flavours() }),
		RunE:              running(f, o, runChartUpdate),
	}
	c.Flags().StringVar((*string)(&o.prefer), "prefer", "", "whose lines count where both have changed the same ones: team or fleetctl")
	completeFlag(c, "prefer", cobra.FixedCompletions([]string{"team", "fleetctl"}, cobra.ShellCompDirectiveNoFileComp))
	o.add(c)
	return c
}
