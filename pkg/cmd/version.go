package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/version"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newVersionCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of fleetctl and of the libraries it embeds",
		Args:  cobra.NoArgs,
		RunE:  running(f, asGiven{}, runVersion),
	}
}

// addVersionFlag gives the program itself --version, which people and scripts try first. Without it the program alone prints its help.
func addVersionFlag(f *factory, root *cobra.Command) {
	wanted := root.Flags().Bool("version", false, "print the version, as fleetctl version does")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if !*wanted {
			return c.Help()
		}
		return runVersion(c.Context(), f, asGiven{})
	}
}

func runVersion(_ context.Context, f *factory, _ asGiven) error {
	return f.show(views.Version(version.Get()))
}
