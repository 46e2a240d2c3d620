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

// rootOptions are the flags of fleetctl without a command.
type rootOptions struct {
	asGiven
	version bool
	help    func() error
}

// addVersionFlag adds --version to the program itself, because people and scripts try it first. Without a flag or a command the program
// prints its help.
func addVersionFlag(f *factory, root *cobra.Command) {
	o := &rootOptions{help: root.Help}
	root.Flags().BoolVar(&o.version, "version", false, "print the version, as fleetctl version does")
	root.RunE = running(f, o, runRoot)
}

func runRoot(ctx context.Context, f *factory, o *rootOptions) error {
	if o.version {
		return runVersion(ctx, f, asGiven{})
	}
	return o.help()
}

func runVersion(_ context.Context, f *factory, _ asGiven) error {
	return f.show(views.Version(version.Get()))
}
