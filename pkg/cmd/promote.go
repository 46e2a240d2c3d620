package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/promotion"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// promoteOptions are the flags of promote.
type promoteOptions struct {
	changeFlags
	promotion promotion.Options
	status    bool
}

func newPromoteCmd(f *factory) *cobra.Command {
	o := &promoteOptions{}
	options := &o.promotion
	c := listFormats(&cobra.Command{
		Use:   "promote",
		Short: "Let production follow the revision that the environments before it run",
		Long: `Move a channel to a newer tag. The environments that follow the channel change with it in everything: the definitions of
their clusters, the charts, and the manifests on the clusters.

Without --to, promote looks at the environments that follow the fleet repo's branch. They have to be healthy at its newest commit: their
clusters are up, with what Flux applies on them, and none is still rolling out. Then promote tags that commit with the next version (v0.1.0,
then v0.1.1…; --to v0.2.0 names another), with the release notes in the tag, and moves the channel to the tag: one line in the source of
each management cluster. The tag is annotated, and signed if git signs. With --to and an existing tag, the channel goes to that tag, so the
same command also takes you back. Tags are never moved, and a new tag is higher than all existing ones.

The change is pushed, or committed if there is no remote; --commit keeps it on this machine, --dry-run shows it. The tag comes first, then
the change: if promote was interrupted, run it again.

Where there is a remote, only its tags count: a tag that only this clone has is a new one. --status says what could not be asked, the remote
and management clusters, and tells the rest; that is no error.

Exit codes: 0 done, or nothing to do; 3 an environment is not healthy at the commit.`,
		Example: `  fleetctl promote --status              # which environment runs what, and what waits
  fleetctl promote                       # the next version
  fleetctl promote --to v1.0.0 --dry-run
  fleetctl promote --to v0.3.1           # back to a version that was good`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runPromote),
	})
	f.addManagement(c)
	doesWithout(c, worksOnAll)
	f.addReach(c)
	fs := c.Flags()
	fs.StringVar(&options.To, "to", "", "tag to move the channel to: an existing tag, or a new one (default: the next version)")
	fs.StringVar(&options.Channel, "channel", "", "channel to move (default: the only channel of tags)")
	fs.BoolVar(&options.SkipHealth, "skip-health", false, "do not check the health of the environments before this one; the tag records that")
	fs.BoolVar(&o.status, "status", false, "show the revision of each environment, and the commits that wait")
	completeFlag(c, "channel", f.completeFrom(-1, tagChannelNames))
	completeFlag(c, "to", o.completeTags(f))
	o.add(c)
	return c
}

// completeTags completes a tag of the channel in --channel that this clone has, the newest first.
func (o *promoteOptions) completeTags(f *factory) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		const inOrder = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		dir, err := f.repoDir()
		if err != nil {
			return nil, inOrder
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		tags, _ := promotion.Tags(ctx, dir, o.promotion.Channel) // what cannot be read completes nothing
		return tags, inOrder
	}
}

func tagChannelNames(r *fleetrepo.Repo, _ []string) []string {
	var names []string
	for _, c := range r.Fleet.Channels() {
		if c.IsTag() {
			names = append(names, c.Name)
		}
	}
	return names
}

func (o *promoteOptions) complete(f *factory, _ ...string) (err error) {
	o.promotion.Cluster, o.remote = f.flags.management, true
	if o.promotion.Change, err = f.changeOptions(&o.changeFlags); err != nil {
		return err
	}
	if !o.status && (f.format == ui.Wide || f.format == ui.Name) {
		return diag.Usage("add --status, or choose human, json or yaml", "--output %s lists what --status finds", f.format)
	}
	if o.status && o.promotion.To != "" {
		return diag.Usage("leave one of them out", "--status changes nothing, and --to names what to change")
	}
	return nil
}

func runPromote(ctx context.Context, f *factory, o *promoteOptions) error {
	if o.status {
		return showPromotions(ctx, f, o)
	}
	result, err := promotion.Promote(ctx, f.store(), o.promotion)
	if err != nil {
		return err
	}
	return f.show(views.Promotion(result))
}

func showPromotions(ctx context.Context, f *factory, o *promoteOptions) error {
	result, err := promotion.Look(ctx, f.store(), o.promotion)
	if err != nil {
		return err
	}
	return f.show(views.Promotions(result))
}
