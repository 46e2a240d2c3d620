package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// upgradePlanOptions are the flags of upgrade plan.
type upgradePlanOptions struct {
	changeFlags
	plan upgrade.PlanOptions
	to   string
}

func newUpgradePlanCmd(f *factory) *cobra.Command {
	o := &upgradePlanOptions{}
	c := listFormats(&cobra.Command{
		Use:   "plan",
		Short: "Show the installed versions, the versions in fleet.yaml, and newer versions that fit",
		Long: `Show three versions of Cluster API, its providers, cert-manager, Flux, the Kubernetes below them, and the charts of features:
the installed version, the version in the fleet repo, and the newest version that fits. A version fits if it implements the Cluster API
contract that this fleetctl knows, and if one step leads to it from the installed version. For each change that fleet.yaml asks for, the
plan says what blocks it, which Deployments and machines are replaced, and which kinds are stored in another version afterwards. It also
names the components that the cluster lacks, the providers there that fleet.yaml does not list, and what is not healthy.

--to latest writes the newest versions that fit into fleet.yaml, and their digests into fleet.lock. It shows the difference; --dry-run
writes nothing, and --commit, --push and --pr carry the change on. No cluster changes before fleetctl upgrade apply.

fleetctl looks for releases over the network, or in --bundle. With --offline it asks nobody but the management cluster.
The cluster need not answer: the plan says what it could not find out.

The version of a feature's chart fits if it has the same major version, and if the chart accepts the Kubernetes of the clusters that have
the feature. --to latest writes it into the feature's files, and its digest into fleet.lock; Flux then brings it to the clusters.

Exit codes: 0 there is nothing to do; 1 something could not be found out; 3 there is something to do.`,
		Example: `  fleetctl upgrade plan
  fleetctl upgrade plan --bundle fleet-bundle.tar.zst -o json
  fleetctl upgrade plan --to latest --pr`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runUpgradePlan),
	})
	f.addManagement(c)
	f.addReach(c)
	o.add(c)
	c.Flags().StringVar(&o.plan.Bundle, "bundle", "", "offline bundle in which to look for versions (folder or .tar.zst)")
	c.Flags().BoolVar(&o.plan.Offline, "offline", false,
		"look for no versions over the network, and compare only the cluster with fleet.yaml")
	c.Flags().StringVar(&o.to, "to", "", "latest: write the newest versions that fit into fleet.yaml and fleet.lock")
	completeFlag(c, "to", cobra.FixedCompletions([]string{"latest"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *upgradePlanOptions) complete(f *factory, _ ...string) (err error) {
	if o.to != "" && o.to != "latest" {
		return diag.Usage("give --to latest; `fleetctl provider add NAME:VERSION` declares a version of one provider",
			"--to %s: there is only latest", o.to)
	}
	if o.to == "" && (o.commit || o.push || o.pr || o.dryRun) {
		return diag.Usage("add --to latest", "a plan alone changes nothing that could be committed")
	}
	if o.to != "" && o.plan.Offline && o.plan.Bundle == "" {
		return diag.Usage("leave out --offline, or give --bundle", "--to latest has to look for the newest versions, and --offline forbids it")
	}
	if o.to != "" {
		if err := f.refuseListFormat("leave out --to, which shows a change"); err != nil {
			return err
		}
	}
	o.plan.ManagementCluster = f.flags.management
	o.plan.CacheDir, err = f.cacheDir()
	return err
}

func runUpgradePlan(ctx context.Context, f *factory, o *upgradePlanOptions) error {
	makePlan := func(r *fleetrepo.Repo) (*upgrade.Plan, error) { return makeUpgradePlan(ctx, f, o.plan, r) }
	if o.to != "" {
		return runChange(ctx, f, &o.changeFlags, change.Options{Edit: upgrade.Declare(ctx, makePlan, o.plan)})
	}
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	plan, err := makePlan(repo)
	if err != nil {
		return err
	}
	return showUpgradePlan(f, plan)
}

// makeUpgradePlan compares the versions that r declares with the installed and the available versions.
func makeUpgradePlan(ctx context.Context, f *factory, o upgrade.PlanOptions, r *fleetrepo.Repo) (*upgrade.Plan, error) {
	step := f.report().Start("look at versions")
	o.Repo = r
	plan, err := upgrade.Make(ctx, f.store(), o)
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	if err := plan.Err(); err != nil { // the plan is shown nevertheless
		step.Fail(err)
	} else {
		step.Done()
	}
	return plan, nil
}

// showUpgradePlan prints a plan, and returns the error with the plan's exit code.
func showUpgradePlan(f *factory, plan *upgrade.Plan) error {
	f.closeReporter()
	if err := f.show(views.UpgradePlan(plan)); err != nil {
		return err
	}
	if err := plan.Err(); err != nil || !plan.Todo() { // an incomplete plan is an error, so that a pipeline does not go on
		return err
	}
	for _, unknown := range plan.Unknown {
		ui.Fprintf(f.streams.Err, "warning: could not find out: %s\n", unknown)
	}
	return silent()
}
