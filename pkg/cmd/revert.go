package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
)

func newRevertCmd(f *factory) *cobra.Command {
	var o changeFlags
	c := &cobra.Command{
		Use:   "revert COMMIT",
		Short: "Take a commit of the fleet repo back, and leave alone what came after it",
		Long: `Take a commit of the fleet repo back, and leave alone what came after it: the files are merged line by line. Where later commits have changed
the same lines, nothing is written and all such files are listed. History stays as it is: the result is a change like any other.

A production that follows tags goes back with ` + "`fleetctl promote --to`" + ` instead.` + editing,
		Example: `  fleetctl revert HEAD --dry-run
  fleetctl revert 3f1c2ab --pr`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return edit(c, f, &o, change.Revert(c.Context(), args[0]))
		},
	}
	o.add(c)
	return c
}
