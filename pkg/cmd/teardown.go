package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/reclaim"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// teardownOptions are the flags of teardown.
type teardownOptions struct {
	deleteClusters, skipDrain, dryRun, yes bool
	abandon                                []string
	timeout                                time.Duration
}

func newTeardownCmd(f *factory) *cobra.Command {
	o := &teardownOptions{}
	c := &cobra.Command{
		Use:   "teardown",
		Short: "Remove a management cluster that init or bootstrap made",
		Long: `Remove a management cluster, its state on this machine and its kubeconfig entries.

teardown refuses while no other management cluster has the workload clusters, because nobody could change or delete these clusters
afterwards. Either hand the clusters to another management cluster (fleetctl pivot), or delete them, too, with --delete-clusters. teardown
never touches the Git repository.

First teardown shows its plan, in order; --dry-run stops there. Before teardown deletes a workload cluster, it drains the cluster: it
deletes the load balancers and volumes that Kubernetes made in the cloud from inside the cluster, because Cluster API does not know them. At
the end it lists the cloud resources that are left, as "fleetctl orphans" does.`,
		Example: `  fleetctl teardown
  fleetctl teardown --delete-clusters --dry-run
  fleetctl teardown --delete-clusters --yes`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runTeardown),
	}
	f.addManagement(c)
	c.Flags().BoolVar(&o.deleteClusters, "delete-clusters", false, "also delete the workload clusters that no other management cluster has")
	c.Flags().BoolVar(&o.skipDrain, "skip-drain", false,
		"do not delete the load balancers and volumes that Kubernetes made from inside the workload clusters")
	c.Flags().StringSliceVar(&o.abandon, "abandon", nil,
		"workload clusters, NAME or NAMESPACE/NAME, that are deleted even if they manage clusters themselves or do not say: nobody manages "+
			"those any more")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what it would do, in order, and change nothing")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "give up after this time (default: 10m for draining a cluster, 30m for deleting all)")
	return c
}

func (o *teardownOptions) complete(*factory, ...string) error {
	if (o.skipDrain || len(o.abandon) > 0) && !o.deleteClusters {
		return diag.Usage("add --delete-clusters", "--skip-drain and --abandon are for the workload clusters that --delete-clusters deletes")
	}
	return nil
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
	options := lifecycle.TeardownOptions{
		Target: target, DeleteClusters: o.deleteClusters, SkipDrain: o.skipDrain, Abandon: o.abandon, DryRun: o.dryRun, Timeout: o.timeout,
		Confirm: func(plan *lifecycle.TeardownPlan) error {
			return f.agreeToTeardown(target.Name, plan, o.deleteClusters && !o.yes)
		},
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

// askCloudsTimeout bounds the search for remaining resources in clouds. Its result does not change the teardown, which is done by then.
const askCloudsTimeout = 2 * time.Minute

// askClouds adds the remaining resources in the fleet's clouds to the result of a teardown. Outside of a fleet repo it does nothing,
// because the clouds are not known.
func (f *factory) askClouds(ctx context.Context, deps management.Deps, result *lifecycle.TeardownResult) {
	if !result.Changed {
		return
	}
	dir, err := f.repoDir()
	if err != nil {
		return
	}
	if _, err := fleetrepo.Find(dir); err != nil {
		return // not in a fleet repo
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
	vault := fromvault.NewReader(dir, deps.LookupEnv)
	defer giveBack(ctx, deps, vault)
	left := reclaim.LeftBy(ctx, deps, result.Cluster, reclaim.Options{
		Repo: repo, Dir: dir, Targets: targets, Vault: vault, Timeout: askCloudsTimeout,
	})
	result.Orphaned, result.Leftovers = left.Clusters, append(result.Leftovers, left.Resources...)
	result.NotAsked = append(result.NotAsked, left.NotAsked...)
}

// agreeToTeardown shows the plan. If ask is true, it also asks for confirmation.
func (f *factory) agreeToTeardown(name string, plan *lifecycle.TeardownPlan, ask bool) error {
	if ask {
		f.closeReporter()
	}
	aside := f.streams
	aside.Out = aside.Err // standard output is only for the result
	if err := views.Print(aside, ui.Human, false, views.TeardownPlan(plan)); err != nil || !ask {
		return err
	}
	return ui.ConfirmTyped(f.streams, deleteQuestion(name, plan), name, "--yes")
}

func deleteQuestion(cluster string, plan *lifecycle.TeardownPlan) string {
	question := "This deletes the management cluster " + cluster
	if len(plan.Clusters) == 0 {
		return question + "."
	}
	question += " and these workload clusters, with their machines and their data:\n"
	for _, c := range plan.Clusters {
		question += "  " + c.Name + "\n"
	}
	return question
}
