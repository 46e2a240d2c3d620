package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
)

// revertOptions are the flags of revert.
type revertOptions struct {
	changeFlags
	commit string
}

func (o *revertOptions) complete(_ *factory, args ...string) error {
	o.commit = args[0]
	return nil
}

func runRevert(ctx context.Context, f *factory, o *revertOptions) error {
	return runChange(ctx, f, &o.changeFlags, change.Options{Edit: change.Revert(ctx, o.commit)})
}

func newRevertCmd(f *factory) *cobra.Command {
	o := &revertOptions{}
	c := &cobra.Command{
		Use:   "revert COMMIT",
		Short: "Revert a commit of the fleet repo, and keep all later commits",
		Long: `Revert a commit of the fleet repo, and keep all later commits: the files are merged line by line. If later commits have
changed the same lines, nothing is written and all such files are listed. History stays as it is: the result is a change like any other.

A production that follows tags goes back with ` + "`fleetctl promote --to TAG`" + ` instead.` + editing,
		Example: `  fleetctl revert HEAD --dry-run
  fleetctl revert 3f1c2ab --pr`,
		Args: cobra.ExactArgs(1),
		RunE: running(f, o, runRevert),
	}
	o.add(c)
	return c
}
