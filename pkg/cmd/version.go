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

func runVersion(_ context.Context, f *factory, _ asGiven) error {
	return f.show(views.Version(version.Get()))
}
