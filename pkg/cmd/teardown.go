package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// teardownOptions are the flags of teardown.
type teardownOptions struct {
	asGiven
	deleteClusters, yes bool
	timeout             time.Duration
}

func newTeardownCmd(f *factory) *cobra.Command {
	o := &teardownOptions{}
	c := &cobra.Command{
		Use:   "teardown",
		Short: "Remove a management cluster that init or bootstrap made",
		Long: `Remove a management cluster, its state on this machine and its kubeconfig entries.

It refuses while workload clusters live only there: without the management cluster nobody could change or delete them. Either move them
to another management cluster (fleetctl bootstrap --pivot-to), or delete them as well with --delete-clusters. The Git repository is
never touched. At the end it asks the clouds that can be asked what they still hold, as "fleetctl orphans" does.`,
		Example: `  fleetctl teardown
  fleetctl teardown --delete-clusters --yes`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runTeardown),
	}
	f.addManagement(c)
	c.Flags().BoolVar(&o.deleteClusters, "delete-clusters", false, "delete the workload clusters that live only there")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "give up after this time (default: 30m for deleting clusters)")
	return c
}

func runTeardown(ctx context.Context, f *factory, o *teardownOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	target, err := f.target()
	if err != nil {
		return err
	}
	options := lifecycle.TeardownOptions{Target: target, DeleteClusters: o.deleteClusters, Timeout: o.timeout}
	if o.deleteClusters && !o.yes {
		options.Confirm = func(clusters []string) error {
			f.closeReporter()
			return ui.ConfirmTyped(f.streams, deleteQuestion(target.Name, clusters), target.Name, "--yes")
		}
	}
	result, err := lifecycle.Teardown(ctx, deps, options)
	if err != nil {
		return err
	}
	f.askClouds(ctx, deps, result)
	f.closeReporter()
	result.Steps = f.report().Events()
	return f.show(views.Teardown(result))
}

// askCloudsTimeout bounds how long the clouds may take to say what they still hold: the management cluster is gone whatever they say.
const askCloudsTimeout = 2 * time.Minute

// askClouds ends a teardown with what the clouds of the fleet still hold. Outside of a fleet repo nobody knows which clouds those are.
func (f *factory) askClouds(ctx context.Context, deps management.Deps, result *lifecycle.TeardownResult) {
	if !result.Changed {
		return
	}
	dir, err := f.repoDir()
	if err != nil {
		return
	}
	if _, err := fleetrepo.Find(dir); err != nil {
		return // it runs in no fleet repo
	}
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		result.NotAsked = append(result.NotAsked, "the clouds: "+err.Error())
		return
	}
	var targets []*management.Target
	for _, t := range f.targetsOf(repo) {
		if t.err != nil {
			result.NotAsked = append(result.NotAsked, "management cluster "+t.name+": "+t.err.Error())
			continue
		}
		targets = append(targets, t.target)
	}
	left, notAsked := lifecycle.LeftInClouds(ctx, deps, lifecycle.OrphansOptions{Repo: repo, Dir: dir, Targets: targets, Timeout: askCloudsTimeout}, result.Cluster)
	result.Leftovers = append(result.Leftovers, left...)
	result.NotAsked = append(result.NotAsked, notAsked...)
}

func deleteQuestion(cluster string, clusters []string) string {
	question := "This deletes the management cluster " + cluster
	if len(clusters) == 0 {
		return question + "."
	}
	question += " and these workload clusters, with their machines and what they store:\n"
	for _, name := range clusters {
		question += "  " + name + "\n"
	}
	return question
}
