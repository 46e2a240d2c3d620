package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newEnvironmentCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "environment", Aliases: []string{"env"}, Short: "List, add, change and remove the environments of the fleet"}
	c.AddCommand(newEnvironmentAddCmd(f), newEnvironmentListCmd(f), newEnvironmentSetCmd(f), newEnvironmentWireCmd(f),
		newEnvironmentRemoveCmd(f))
	addPausing(f, c, "Stop changes in Git from reaching an environment", "Let changes in Git reach a paused environment again",
		func(*cobra.Command) pausing {
			return pausing{
				noun: "environment", what: ofEnvironment, byCommit: (*fleetrepo.Repo).PauseEnvironment,
				atOnce: (*fleetrepo.Repo).PausedByEnvironment,
			}
		})
	return c
}

// environmentFlags are the flags for the settings of an environment.
type environmentFlags struct {
	changeFlags
	named
	channel    string
	production bool
	// given tells whether a flag was given.
	given func(flag string) bool
}

func (o *environmentFlags) addTo(c *cobra.Command, f *factory) {
	c.Flags().StringVar(&o.channel, "channel", "", "channel that the environment follows (default: main, the fleet repo's branch)")
	c.Flags().BoolVar(&o.production, "production", false,
		"make it production: it follows tags if the fleet has any, and tenants may only look (default: by its name)")
	completeFlag(c, "channel", f.completeFrom(-1, channelNames))
	o.given = c.Flags().Changed
	o.add(c)
}

// options returns the settings whose flags were given.
func (o *environmentFlags) options() fleetrepo.EnvironmentOptions {
	options := fleetrepo.EnvironmentOptions{Channel: o.channel}
	if o.given("production") {
		options.Production = &o.production
	}
	return options
}

// environmentAddOptions are the flags of environment add.
type environmentAddOptions struct{ environmentFlags }

func (o *environmentAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddEnvironment(o.name, o.options())
}

func newEnvironmentAddCmd(f *factory) *cobra.Command {
	o := &environmentAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add an environment",
		Long: `Add an environment: list it in fleet.yaml, and make, for each management cluster, the folder of its clusters and the Flux
Kustomization that applies them. If the environment's channel has no tag yet, Flux applies the environment from the first ` +
			"`fleetctl promote`" + ` on.` + editing,
		Example: `  fleetctl environment add staging --push
  fleetctl environment add production --channel release --push`,
		RunE: running(f, o, runEdit),
	}
	o.addTo(c, f)
	takes(f, c, argument{what: "environment"})
	return c
}

// environmentSetOptions are the flags of environment set.
type environmentSetOptions struct{ environmentFlags }

func (o *environmentSetOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.SetEnvironment(o.name, o.options())
}

func newEnvironmentSetCmd(f *factory) *cobra.Command {
	o := &environmentSetOptions{}
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Change which channel an environment follows, or whether it is production",
		Long: `Change the channel that an environment follows, or whether it is production. The channel decides everything, the definitions
of the clusters included, so the clusters change to the other channel's content: look at ` + "`fleetctl promote --status`" + ` first.` +
			editing,
		Example: `  fleetctl environment set production --channel release --push
  fleetctl environment set qa --production=false`,
		RunE: running(f, o, runEdit),
	}
	o.addTo(c, f)
	takes(f, c, ofEnvironment)
	return c
}

// environmentWireOptions are the flags of environment wire.
type environmentWireOptions struct {
	changeFlags
	environments []string
}

func (o *environmentWireOptions) complete(_ *factory, args ...string) error {
	o.environments = args
	return nil
}

func (o *environmentWireOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.WireFolders(o.environments)
}

func newEnvironmentWireCmd(f *factory) *cobra.Command {
	o := &environmentWireOptions{}
	c := &cobra.Command{
		Use:   "wire [NAME...]",
		Short: "Let Flux apply the folders of environments and their clusters",
		Long: `Let Flux apply an environment's common/{non-namespaced,namespaced} to each of its clusters, and
<cluster>/{non-namespaced,namespaced} to that cluster. Environments and clusters that fleetctl makes have this from the start. Use this
command for older environments, and for clusters written by hand. Without a name, it wires all environments.` + editing,
		Example: "  fleetctl environment wire staging --push",
		Args:    cobra.ArbitraryArgs,
		RunE:    running(f, o, runEdit),
	}
	o.add(c)
	c.ValidArgsFunction = func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return f.completeFrom(len(args), environmentNames)(c, args, toComplete)
	}
	return c
}

func newEnvironmentRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short: "Remove an environment that has no clusters and no tenants",
		Long: `Remove an environment from fleet.yaml, with the folder of its clusters and the Flux Kustomization that applies it. Remove its
clusters and tenants first, each with its own command.` + editing,
		Example: "  fleetctl environment remove staging --push",
	}, ofEnvironment, (*fleetrepo.Repo).RemoveEnvironment)
}

func newEnvironmentListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "environment", "List the environments, their channels, and how many clusters each has",
		(*fleetrepo.Repo).Environments, views.Environments)
}
