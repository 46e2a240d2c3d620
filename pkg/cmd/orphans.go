package cmd

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// orphansOptions are the flags of orphans.
type orphansOptions struct {
	regions     []string
	deletes     string
	consent     orphans.Consent
	yes         bool
	runCommands bool
	timeout     time.Duration
}

func newOrphansCmd(f *factory) *cobra.Command {
	o := &orphansOptions{}
	c := listFormats(&cobra.Command{
		Use:   "orphans",
		Short: "List what a cloud still holds of the fleet's clusters and nobody manages any more",
		Long: `List what a cloud still holds of the fleet's clusters and no management cluster that answers owns: machines that run, and are paid for, after what made
them is gone. The cloud is asked with the credentials that "fleetctl init" gives its provider, in every region of the account; nothing is changed.

What proves that something is this fleet's is its tag ` + v1alpha1.FleetTag + `, which clusters of "fleetctl cluster add" have, or that it is in a network that
has it. What has the tags of a cluster and of no fleet is listed with proof "none": it may be another fleet's. What has another fleet's tag is counted
and not shown.

With --delete NAME everything of that cluster is deleted, in the order that the cloud demands, after you have typed its name. It refuses while a
management cluster that could own it cannot be asked (--owner-is-gone says that there is none any more), and leaves out what nothing proves to be the
fleet's (--unproven takes it in).

Exit codes: 0 there are none, and everything was asked; 3 there are some, or something could not be asked. With --delete it is about that cluster.`,
		Example: `  fleetctl orphans
  fleetctl orphans --region eu-central-1 -o json
  fleetctl orphans --delete shop --owner-is-gone`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runOrphans(c, f, o) },
	})
	fs := c.Flags()
	fs.StringSliceVar(&o.regions, "region", nil, "ask this region alone; repeat for several (default: all of the account)")
	fs.StringVar(&o.deletes, "delete", "", "delete all orphans of the cluster with this name")
	fs.BoolVar(&o.consent.OwnerIsGone, "owner-is-gone", false, "the management clusters that cannot be asked do not exist any more")
	fs.BoolVar(&o.consent.Unproven, "unproven", false, "delete also what nothing proves to be this fleet's")
	fs.BoolVar(&o.runCommands, "run-commands", false, "run the commands of fleet.yaml that print credentials")
	fs.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "give up asking after this time; deleting has half an hour more")
	return c
}

func runOrphans(c *cobra.Command, f *factory, o *orphansOptions) error {
	if o.deletes == "" && (o.yes || o.consent.OwnerIsGone || o.consent.Unproven) {
		return diag.Usage("name the cluster with --delete", "--yes, --owner-is-gone and --unproven are for --delete")
	}
	find, err := f.orphansFinder(c, o)
	if err != nil {
		return err
	}
	report, err := find()
	if err != nil {
		return err
	}
	if o.deletes != "" {
		if report, err = deleteOrphans(c, f, o, report, find); err != nil {
			return err
		}
	}
	f.closeReporter()
	if err := f.show(views.Orphans(report, time.Now())); err != nil {
		return err
	}
	if isLeft(report, o.deletes) {
		return silent()
	}
	return nil
}

// isLeft tells that there are orphans, or may be: of the cluster that was deleted, else any.
func isLeft(report *orphans.Report, deleted string) bool {
	if deleted != "" {
		return len(report.Of(deleted)) > 0 || !report.Answered()
	}
	return report.Count() > 0 || !report.Complete
}

// orphansFinder returns what looks, as often as it is called.
func (f *factory) orphansFinder(c *cobra.Command, o *orphansOptions) (func() (*orphans.Report, error), error) {
	repo, err := f.fleetRepo()
	if err != nil {
		return nil, err
	}
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	deps, err := f.deps()
	if err != nil {
		return nil, err
	}
	return func() (*orphans.Report, error) {
		targets, err := f.allTargets()
		if err != nil {
			return nil, err
		}
		return lifecycle.Orphans(c.Context(), deps, lifecycle.OrphansOptions{
			Repo: repo, Dir: dir, Targets: targets, Regions: o.regions, RunCommands: o.runCommands, Timeout: o.timeout,
		})
	}, nil
}

// deleteOrphans deletes what is there when the user has agreed, and looks again.
func deleteOrphans(c *cobra.Command, f *factory, o *orphansOptions, report *orphans.Report, find func() (*orphans.Report, error)) (*orphans.Report, error) {
	agreed, err := report.Check(o.deletes, o.consent)
	if err != nil {
		return nil, err
	}
	if !o.yes {
		f.closeReporter()
		if err := ui.ConfirmTyped(f.streams, orphansQuestion(agreed), o.deletes, "--yes"); err != nil {
			return nil, err
		}
	}
	if report, err = find(); err != nil {
		return nil, err
	}
	now, err := report.Check(o.deletes, o.consent)
	if err != nil {
		return nil, err
	}
	if err := lifecycle.DeleteOrphans(c.Context(), f.report(), agreed, now); err != nil {
		return nil, err
	}
	return find()
}

func orphansQuestion(clusters []orphans.Cluster) string {
	var question strings.Builder
	for _, cluster := range clusters {
		ui.Fprintf(&question, "This deletes %d resources of cluster %s in %s, with what they store:\n", len(cluster.Resources), cluster.Name, cluster.Cloud)
		for _, r := range cluster.Resources {
			note := ""
			if r.Proof == orphans.ProofNone {
				note = "  (nothing proves that it is this fleet's)"
			}
			ui.Fprintf(&question, "  %s %s %s%s\n", r.Region, r.Kind, r.ID, note)
		}
		if cluster.Declared {
			ui.Fprintf(&question, "The fleet repo still declares %s: a management cluster that is made anew makes it again.\n", cluster.Name)
		}
	}
	return strings.TrimRight(question.String(), "\n")
}
