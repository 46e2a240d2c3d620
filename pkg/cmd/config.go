package cmd

import (
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/config"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func newConfigCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Look at the configuration of fleetctl itself"}
	var origin bool
	view := &cobra.Command{
		Use:   "view",
		Short: "Print the settings that are in force",
		Long: `Print the settings that are in force. A flag wins over the environment (FLEETCTL_*), that over the configuration file, that over the
default.`,
		Example: "  fleetctl config view --show-origin",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			result := struct {
				FormatVersion string           `json:"formatVersion"`
				Settings      []config.Setting `json:"settings"`
			}{"1", f.settings.All()}
			return ui.Print(f.streams, f.format, result, func(w io.Writer) error { return configView(w, result.Settings, origin) })
		},
	}
	view.Flags().BoolVar(&origin, "show-origin", false, "say where each value comes from")
	c.AddCommand(view)
	return c
}

func configView(w io.Writer, settings []config.Setting, origin bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range settings {
		if origin {
			ui.Fprintf(t, "%s\t%v\t%s\n", s.Key, s.Value, s.Origin)
			continue
		}
		ui.Fprintf(t, "%s\t%v\n", s.Key, s.Value)
	}
	return t.Flush()
}
