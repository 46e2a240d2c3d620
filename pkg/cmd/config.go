package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/views"
)

func newConfigCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Look at the configuration of fleetctl itself"}
	o := &configViewOptions{}
	view := &cobra.Command{
		Use:   "view",
		Short: "Print the settings that are in force",
		Long: `Print the settings that are in force. A flag wins over an environment variable (FLEETCTL_*), a variable over the
configuration file, and the file over the default.`,
		Example: "  fleetctl config view --show-origin",
		Args:    cobra.NoArgs,
		RunE:    running(f, o, runConfigView),
	}
	view.Flags().BoolVar(&o.origin, "show-origin", false, "say where each value comes from")
	c.AddCommand(view)
	return c
}

// configViewOptions are the flags of config view.
type configViewOptions struct {
	asGiven
	origin bool
}

func runConfigView(_ context.Context, f *factory, o *configViewOptions) error {
	return f.show(views.Settings(f.settings.All(), o.origin))
}
