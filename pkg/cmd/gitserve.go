package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/management"
)

// newGitServeCmd is the background process that serves a fleet repo without a remote. Only fleetctl itself starts it.
func newGitServeCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:    "git-serve STATE-DIR",
		Short:  "Serve a fleet repo without a remote, read-only, to Flux",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   running(f, &named{}, runGitServe),
	}
}

func runGitServe(ctx context.Context, f *factory, stateDir *named) error {
	return management.ServeRepo(ctx, stateDir.name, f.streams.Raw().Out, f.streams.Raw().Err)
}
