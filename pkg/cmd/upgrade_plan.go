package cmd

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
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
	if err := ui.Print(f.streams, f.format, plan, func(w io.Writer) error { return upgradePlanView(w, plan) }); err != nil {
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

var versionTable = table[upgrade.Component]{
	name: func(c upgrade.Component) string { return c.Name },
	columns: []column[upgrade.Component]{
		{title: "COMPONENT", of: componentName},
		{title: "INSTALLED", of: func(c upgrade.Component) string { return cmp.Or(c.Installed, "-") }},
		{title: "FLEET.YAML", of: func(c upgrade.Component) string { return cmp.Or(c.Declared, "-") }},
		{title: "NEWEST", of: func(c upgrade.Component) string { return cmp.Or(c.Newest, "-") }},
		{title: "CONTRACT", of: func(c upgrade.Component) string { return c.Contract }, optional: true},
	},
}

func componentName(c upgrade.Component) string {
	if c.Type == c.Name {
		return c.Name
	}
	return c.Type + " " + c.Name
}

func upgradePlanView(w io.Writer, p *upgrade.Plan) error {
	if err := versionTable.print(w, ui.Human, p.Components); err != nil {
		return err
	}
	for _, c := range p.Components {
		for _, line := range []struct {
			what  string
			texts []string
		}{
			{"cannot be upgraded", c.Against},
			{"replaces the Deployments", c.Restarts},
			{"stores anew", c.Converts},
			{"replaces", c.Replaces},
		} {
			if len(line.texts) > 0 {
				ui.Fprintf(w, "%s %s: %s\n", componentName(c), line.what, strings.Join(line.texts, ", "))
			}
		}
		if c.Note != "" {
			ui.Fprintf(w, "%s: %s\n", componentName(c), c.Note)
		}
	}
	if p.ToApply {
		ui.FprintText(w, "\n`fleetctl upgrade apply` brings the cluster to fleet.yaml. No machine of a workload cluster is replaced by that.")
	}
	if p.ToDeclare {
		ui.FprintText(w, "\n`fleetctl upgrade plan --to latest` puts the newest versions into fleet.yaml.")
	}
	return nil
}
