package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/ui"
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
	if err := showOrphans(f, report); err != nil {
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
	var b strings.Builder
	for _, cluster := range clusters {
		fmt.Fprintf(&b, "This deletes %d resources of cluster %s in %s, with what they store:\n", len(cluster.Resources), cluster.Name, cluster.Cloud)
		for _, r := range cluster.Resources {
			note := ""
			if r.Proof == orphans.ProofNone {
				note = "  (nothing proves that it is this fleet's)"
			}
			fmt.Fprintf(&b, "  %s %s %s%s\n", r.Region, r.Kind, r.ID, note)
		}
		if cluster.Declared {
			fmt.Fprintf(&b, "The fleet repo still declares %s: a management cluster that is made anew makes it again.\n", cluster.Name)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// orphan is a resource with the cluster that it belongs to.
type orphan struct {
	cluster orphans.Cluster
	orphans.Resource
}

var orphanTable = table[orphan]{
	none: "",
	name: func(o orphan) string { return o.ID },
	columns: []column[orphan]{
		{title: "CLUSTER", of: func(o orphan) string { return o.cluster.Name }},
		{title: "CLOUD", of: func(o orphan) string { return o.cluster.Cloud }},
		{title: "REGION", of: func(o orphan) string { return o.Region }},
		{title: "KIND", of: func(o orphan) string { return o.Kind }},
		{title: "ID", of: func(o orphan) string { return shortID(o.ID) }},
		{title: "NAME", of: func(o orphan) string { return o.Name }, wide: true},
		{title: "AGE", of: func(o orphan) string {
			if o.Created == nil {
				return "-"
			}
			return duration.HumanDuration(time.Since(*o.Created))
		}},
		{title: "COST", of: func(o orphan) string { return string(o.Cost) }},
		{title: "PROOF", of: func(o orphan) string { return string(o.Proof) }},
	},
}

// shortID is an ARN without what all of an account have alike.
func shortID(id string) string {
	const resource, fields = 5, 6
	if parts := strings.SplitN(id, ":", fields); len(parts) == fields && parts[0] == "arn" {
		return parts[resource]
	}
	return id
}

func showOrphans(f *factory, report *orphans.Report) error {
	return ui.Print(f.streams, f.format, report, func(w io.Writer) error {
		var all []orphan
		for _, cluster := range report.Clusters {
			for _, r := range cluster.Resources {
				all = append(all, orphan{cluster, r})
			}
		}
		if len(all) > 0 || f.format == ui.Name {
			if err := orphanTable.print(w, f.format, all); err != nil || f.format == ui.Name {
				return err
			}
		}
		orphansNotes(w, report)
		return nil
	})
}

// together are problems with those of other regions that say the same.
func together(problems []cloud.Problem) []cloud.Problem {
	var all []cloud.Problem
	for _, p := range problems {
		i := slices.IndexFunc(all, func(other cloud.Problem) bool { return other.Text == p.Text && other.Hint == p.Hint })
		if i < 0 {
			all = append(all, p)
			continue
		}
		all[i].Region += ", " + p.Region
	}
	return all
}

// orphansNotes says what the table does not: what was not asked, and whose what was found may be.
func orphansNotes(w io.Writer, report *orphans.Report) {
	for _, c := range report.Clouds {
		for _, p := range together(c.Problems) {
			ui.Fprintf(w, "%s could not be asked: %s\n", strings.TrimSpace(c.Cloud+" "+p.Region), p.Text)
			if p.Hint != "" {
				ui.Fprintf(w, "  hint: %s\n", p.Hint)
			}
		}
	}
	for _, u := range report.Unasked {
		ui.Fprintf(w, "Management cluster %s could not be asked, so what it owns is among them: %s\n", u.Name, u.Error)
	}
	for _, c := range report.Clusters {
		if !c.Proven {
			ui.Fprintf(w, "Cluster %s: what has the proof \"none\" may be another fleet's: its tags name no fleet.\n", c.Name)
		}
		if c.Declared {
			ui.Fprintf(w, "Cluster %s is still declared in the fleet repo: a management cluster that is made anew makes it again.\n", c.Name)
		}
	}
	if report.Others > 0 {
		ui.Fprintf(w, "%d resources in the same accounts are other fleets', and are not listed.\n", report.Others)
	}
	switch n := report.Count(); {
	case n > 0:
		ui.Fprintf(w, "%d orphans. `fleetctl orphans --delete CLUSTER` deletes those of a cluster.\n", n)
	case report.Complete:
		ui.Fprintf(w, "No orphans: nobody but the fleet's management clusters owns what its clouds hold.\n")
	default:
		ui.Fprintf(w, "No orphans were found, but not everything could be asked.\n")
	}
}
