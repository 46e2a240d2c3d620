package views

import (
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/reclaim"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// orphan is a resource with the cluster that it belongs to.
type orphan struct {
	cluster orphans.Cluster

	orphans.Resource

	now time.Time
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
			return duration.HumanDuration(max(0, o.now.Sub(*o.Created))) // the clock of this machine may be behind the cloud's
		}},
		{title: "COST", of: func(o orphan) string { return string(o.Cost) }},
		{title: "PROOF", of: func(o orphan) string { return string(o.Proof) }},
	},
}

// deletionTable has all columns but the cluster's, because all resources are of one cluster.
var deletionTable = table[orphan]{name: orphanTable.name, columns: orphanTable.columns[2:]}

// shortID is an ARN without the parts that all resources of an account have in common.
func shortID(id string) string {
	const resource, fields = 5, 6
	if parts := strings.SplitN(id, ":", fields); len(parts) == fields && parts[0] == "arn" {
		return parts[resource]
	}
	return id
}

// OrphansDeletion is the view of the resources that are about to be deleted, in order. Ages are counted to now.
func OrphansDeletion(d *orphans.Deletion, now time.Time) View {
	return of(d, func(w io.Writer, d *orphans.Deletion) error {
		ui.Fprintf(w, "Deletes, in this order:\n")
		if err := deletionTable.print(w, ui.Human, orphansOf(d.Resources, now)); err != nil {
			return err
		}
		for _, k := range d.Kept {
			ui.Fprintf(w, "Keeps %s %s: %s\n", k.Kind, shortID(k.ID), k.Why)
		}
		return nil
	})
}

// orphansOf returns the lines of one cluster's table.
func orphansOf(resources []orphans.Resource, now time.Time) []orphan {
	var all []orphan
	for _, r := range resources {
		all = append(all, orphan{Resource: r, now: now})
	}
	return all
}

// DeletedOrphans is the output of `fleetctl orphans --delete`: the deleted resources, and the resources that are left.
func DeletedOrphans(r *reclaim.Deleted) View { return of(r, deletedOrphansView) }

func deletedOrphansView(w io.Writer, r *reclaim.Deleted) error {
	verb, done := "Deleted", r.Deleted
	if r.DryRun {
		verb, done = "Would delete", r.Planned
	}
	for _, d := range done {
		ui.Fprintf(w, "%s %s %s in %s\n", verb, d.Kind, shortID(d.ID), d.Region)
	}
	for _, l := range r.Left {
		ui.Fprintf(w, "Left: %s %s in %s: %s\n", l.Kind, shortID(l.ID), l.Region, l.Why)
	}
	where := ""
	if len(r.Regions) > 0 { // the other clouds were not asked
		where = " in " + strings.Join(r.Regions, ", ")
	}
	for _, provider := range r.NotListed {
		notListed(w, provider)
	}
	accountsNotAsked(w, r.AccountsNotAsked)
	if len(r.NotListed)+len(r.AccountsNotAsked) > 0 {
		where += ", as far as could be asked"
	}
	switch {
	case len(r.Left) > 0:
		ui.Fprintf(w, "%s of the cluster %s %s left%s.\n", plain.Count(len(r.Left), "resource"), r.Cluster, plain.Are(len(r.Left)), where)
	case r.DryRun && len(done) > 0:
		ui.Fprintf(w, "Nothing was changed.\n")
	case len(done) > 0:
		ui.Fprintf(w, "Nothing of the cluster %s is left%s.\n", r.Cluster, where)
	default:
		ui.Fprintf(w, "The clouds have nothing of a cluster %s%s.\n", r.Cluster, where)
	}
	return nil
}

func notListed(w io.Writer, provider string) {
	ui.Fprintf(w, "%s was not asked: fleetctl cannot list the resources of this cloud. Look there by hand.\n", provider)
}

func accountsNotAsked(w io.Writer, accounts []orphans.AccountNotAsked) {
	for _, a := range accounts {
		ui.Fprintf(w, "Not asked: %s\n", a)
		if a.Hint != "" {
			ui.Fprintf(w, "  hint: %s\n", a.Hint)
		}
	}
}

// Orphans is the view of the cloud resources that nobody manages. Ages are counted to now.
func Orphans(report *orphans.Report, now time.Time) View {
	return view{report, func(p *Page) error {
		var all []orphan
		for _, cluster := range report.Clusters {
			for _, r := range cluster.Resources {
				all = append(all, orphan{cluster: cluster, Resource: r, now: now})
			}
		}
		if len(all) > 0 || p.Format == ui.Name {
			if err := orphanTable.print(p.Out, p.Format, all); err != nil || p.Format == ui.Name {
				return err
			}
		}
		orphansNotes(p.Out, report)
		return nil
	}}
}

// together merges the problems of several regions that have the same text.
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

// orphansNotes prints what the table leaves out: the clouds and management clusters that could not be asked, and whose resources the table
// may hold.
func orphansNotes(w io.Writer, report *orphans.Report) {
	for _, c := range report.Clouds {
		for _, p := range together(c.Problems) {
			ui.Fprintf(w, "%s could not be asked: %s\n", c.Where(p.Region), p.Text)
			if p.Hint != "" {
				ui.Fprintf(w, "  hint: %s\n", p.Hint)
			}
		}
	}
	for _, provider := range report.NotListed {
		notListed(w, provider)
	}
	accountsNotAsked(w, report.AccountsNotAsked)
	for _, u := range report.Unasked {
		ui.Fprintf(w, "Management cluster %s could not be asked, so the list includes its resources: %s\n", u.Name, u.Error)
	}
	for _, c := range report.Clusters {
		if !c.Proven {
			ui.Fprintf(w, "Cluster %s: resources with the proof \"none\" may belong to another fleet: nothing on them names one.\n", c.Name)
		}
		if len(c.UsedBy) > 0 {
			ui.Fprintf(w, "Cluster %s: others use its network: %s\n", c.Name, plain.Names(c.UsedBy, orphans.MostNamed))
		}
		if c.Declared {
			ui.Fprintf(w, "Cluster %s is still declared in the fleet repo: a new management cluster would make it again.\n", c.Name)
		}
	}
	if report.Others > 0 {
		ui.Fprintf(w, "%s of other fleets in the same accounts %s not listed.\n",
			plain.Count(report.Others, "resource"), plain.Are(report.Others))
	}
	switch n := report.Count(); {
	case n > 0:
		ui.Fprintf(w, "%s, as far as the clouds tell. Look at each one; `fleetctl orphans --delete CLUSTER` deletes what proves to be the "+
			"fleet's.\n", plain.Count(n, "orphan"))
	case report.Complete:
		ui.Fprintf(w, "No orphans: the fleet's management clusters own all cloud resources of its clusters.\n")
	default:
		ui.Fprintf(w, "No orphans were found, but not everything could be asked.\n")
	}
}
