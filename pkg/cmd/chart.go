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
		Long: `The charts in charts/ are copies that belong to the team, which may change them freely. fleet.lock records the content that
fleetctl wrote, so that a newer fleetctl can update the charts without losing the team's changes. For any other provider, make a chart from
a cluster template.`,
	}
	c.AddCommand(newChartAddCmd(f), newChartListCmd(f), newChartUpdateCmd(f), newChartRemoveCmd(f))
	return c
}

func newChartListCmd(f *factory) *cobra.Command {
	c := newListCmd(f, "chart", "List the charts, where they come from, and whether this fleetctl has something new for them",
		(*fleetrepo.Repo).Charts, views.Charts)
	c.Long = `List the charts, where they come from, and whether this fleetctl has something new for them.

current  the chart is at the version of this fleetctl, with the team's changes
behind   this fleetctl has a newer version: ` + "`fleetctl chart update`" + `
ahead    the chart comes from a newer fleetctl than this one
own      the chart belongs to the team: fleetctl has no chart of that name, or fleet.lock does not record which content came from fleetctl`
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
		Short: "Update charts to this fleetctl's versions, and keep the team's changes",
		Long: `Update charts to the versions of this fleetctl: the named charts, or all charts that fleetctl wrote. The team's changes stay:
they are merged line by line. The base of the merge is the version that fleet.lock records, read from Git. If both sides have changed the
same lines, nothing is written and the lines are listed: decide for them with --prefer team or --prefer fleetctl, and everything else is
merged.

A chart that fleet.lock does not record, but that has the name of one of fleetctl's charts, is updated only when you name it. If Git has an
earlier copy that equals this fleetctl's chart, that copy is the base of the merge. Otherwise every file that differs is listed, and
--prefer decides for whole files.

The clusters of these charts are rendered with the result. A cluster that rendered before and no longer does is named, and --commit and
--push refuse to go on: its values have to change in the same commit.` + editing,
		Example: `  fleetctl chart update --dry-run
  fleetctl chart update aws-eks --prefer team --pr`,
		ValidArgsFunction: f.completeFrom(-1, func(r *fleetrepo.Repo, _ []string) []string { return r.Flavours() }),
		RunE:              running(f, o, runChartUpdate),
	}
	c.Flags().StringVar((*string)(&o.prefer), "prefer", "", "whose lines to take if both have changed the same lines: team or fleetctl")
	completeFlag(c, "prefer", cobra.FixedCompletions([]string{"team", "fleetctl"}, cobra.ShellCompDirectiveNoFileComp))
	o.add(c)
	return c
}
