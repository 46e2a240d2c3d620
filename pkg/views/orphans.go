package views

import (
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/orphans"
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
			return duration.HumanDuration(o.now.Sub(*o.Created))
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

// Orphans is the view of what clouds hold and nobody manages; ages are counted to now.
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
		ui.Fprintf(w, "%d orphans, as far as tags tell. Look at each before you delete it.\n", n)
	case report.Complete:
		ui.Fprintf(w, "No orphans: nobody but the fleet's management clusters owns what its clouds hold.\n")
	default:
		ui.Fprintf(w, "No orphans were found, but not everything could be asked.\n")
	}
}
