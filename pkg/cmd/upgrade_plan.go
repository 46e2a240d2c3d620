package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newUpgradePlanCmd(f *factory) *cobra.Command {
	var o changeFlags
	var bundle, to string
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what is installed, what fleet.yaml says, and what newer versions there are",
		Long: `Show of Cluster API, its providers, cert-manager, Flux and the Kubernetes below them what is installed, what fleet.yaml says, and the newest version
that fits: with the contract of Cluster API that this fleetctl knows, and in one step from what is installed. Of what fleet.yaml would change it says what
stands against it, which Deployments are replaced, which kinds are stored in another version afterwards, and which machines are replaced.

--to latest puts the newest versions that fit into fleet.yaml, and their digests into fleet.lock. It shows the difference; --dry-run writes nothing,
--commit, --push and --pr carry the change on. Nothing changes on a cluster before fleetctl upgrade apply.

Releases are looked for over the network, or in --bundle. The cluster need not answer: what could not be found out is said.

Exit codes: 0 there is nothing to do; 1 something could not be found out; 3 there is something to do.`,
		Example: `  fleetctl upgrade plan
  fleetctl upgrade plan --bundle fleet-bundle.tar.zst -o json
  fleetctl upgrade plan --to latest --pr`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if to != "" && to != "latest" {
				return diag.Usage("give --to latest; `fleetctl provider add NAME:VERSION` declares a version of one provider", "--to %s: there is only latest", to)
			}
			if to == "" && (o.commit || o.push || o.pr || o.dryRun) {
				return diag.Usage("add --to latest", "a plan alone changes nothing that could be committed")
			}
			options := upgrade.PlanOptions{ManagementCluster: f.flags.management, Bundle: bundle, CacheDir: f.cacheDir()}
			makePlan := func(r *fleetrepo.Repo) (*upgrade.Plan, error) {
				step := f.report().Start("look at versions")
				options.Repo = r
				plan, err := upgrade.Make(c.Context(), f.store(), options)
				if err != nil {
					step.Fail(err)
					return nil, err
				}
				step.Done()
				return plan, nil
			}
			if to != "" {
				return runChange(c, f, &o, change.Options{Edit: upgrade.Declare(c.Context(), makePlan, options)})
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
		},
	}
	f.addManagement(c)
	f.addReach(c)
	o.add(c)
	c.Flags().StringVar(&bundle, "bundle", "", "offline bundle in which to look for versions (folder or .tar.zst)")
	c.Flags().StringVar(&to, "to", "", "latest: put the newest versions that fit into fleet.yaml and fleet.lock")
	completeFlag(c, "to", cobra.FixedCompletions([]string{"latest"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// showUpgradePlan prints a plan, and ends as its exit codes say.
func showUpgradePlan(f *factory, plan *upgrade.Plan) error {
	f.closeReporter()
	if err := f.show(views.UpgradePlan(plan)); err != nil {
		return err
	}
	switch {
	case plan.Todo():
		for _, unknown := range plan.Unknown {
			ui.Fprintf(f.streams.Err, "warning: not found out: %s\n", unknown)
		}
		return silent()
	default:
		return plan.Err()
	}
}
