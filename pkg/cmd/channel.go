package cmd

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/views"
)

var ofChannel = argument{what: "channel", choices: channelNames}

func newChannelCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "channel", Short: "List, add and remove the channels that environments follow",
		Long: `A channel is the Git reference that environments follow for everything: a branch, or the newest tag that ` + "`fleetctl promote`" +
			`
has set. The channel main is the fleet repo's branch, and always exists.`,
	}
	c.AddCommand(newChannelAddCmd(f), newChannelListCmd(f), newChannelRemoveCmd(f))
	addPausing(f, c, "Keep a channel's environments at their revision", "Let a paused channel's environments follow it again",
		func(*cobra.Command) pausing {
			return pausing{
				noun: "channel", what: ofChannel, byCommit: (*fleetrepo.Repo).PauseChannel, atOnce: (*fleetrepo.Repo).PausedByChannel,
				onlyAtOnce: v1alpha1.MainChannel,
			}
		})
	return c
}

// channelAddOptions are the flags of channel add.
type channelAddOptions struct {
	changeFlags
	channel      v1alpha1.Channel
	environments []string
}

func (o *channelAddOptions) complete(_ *factory, args ...string) error {
	o.channel.Name = args[0]
	if o.channel.Branch == "" {
		o.channel.Tag = cmp.Or(o.channel.Tag, "v*")
	} else if o.channel.Tag != "" {
		return diag.Usage("give one of them", "a channel follows a branch or tags, not both")
	}
	return nil
}

func (o *channelAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddChannel(o.channel, o.environments)
}

func newChannelAddCmd(f *factory) *cobra.Command {
	o := &channelAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a channel of tags, or of another branch",
		Long: `Add a channel to fleet.yaml, and let environments follow it. --tag is the pattern of its tags, with a * in the place
of the version.

In a fleet with a channel of tags, no production environment may follow a branch. So the first channel of tags takes all production
environments along, whichever environments --environment names. A new channel of tags has no tag. The first ` + "`fleetctl promote`" +
			` makes
the tag, and until then its environments stay as they are.` + editing,
		Example: `  fleetctl channel add release --environment production --push
  fleetctl channel add release --tag 'fleet-*'
  fleetctl channel add next --branch next --environment staging`,
		RunE: running(f, o, runEdit),
	}
	c.Flags().StringVar(&o.channel.Tag, "tag", "", "pattern of the channel's tags (default: v*)")
	c.Flags().StringVar(&o.channel.Branch, "branch", "", "branch that the channel follows, instead of tags")
	c.Flags().StringSliceVar(&o.environments, "environment", nil, "environment that follows the channel from now on")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	o.add(c)
	takes(f, c, argument{what: "channel"})
	return c
}

func newChannelRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short:   "Remove a channel that no environment follows",
		Long:    "Remove a channel that no environment follows. Its tags stay." + editing,
		Example: "  fleetctl channel remove next --push",
	}, ofChannel, (*fleetrepo.Repo).RemoveChannel)
}

func newChannelListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "channel", "List the channels, their revisions, and the environments that follow them",
		(*fleetrepo.Repo).Channels, views.Channels)
}

func channelNames(r *fleetrepo.Repo, _ []string) []string {
	var names []string
	for _, c := range r.Fleet.Channels() {
		names = append(names, c.Name)
	}
	return names
}
