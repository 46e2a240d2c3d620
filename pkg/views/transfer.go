package views

import (
	"io"
	"time"

	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/transfer"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Transfer is the output of `fleetctl cluster transfer`: a cluster that another management cluster has taken over, or
// would.
func Transfer(r *transfer.Result) View {
	return view{r, func(p *Page) error { return transferView(p, r) }}
}

// Drill is what `fleetctl drill` has found.
func Drill(r *pivot.DrillResult) View { return of(r, drillView) }

func transferView(p *Page, r *transfer.Result) error {
	w := p.Out
	if r.Change != nil {
		for _, file := range r.Change.Files {
			ui.Fprintf(w, "%s %s\n", file.Action, file.Path)
		}
	}
	switch r.Outcome {
	case "planned":
		if r.Plan != nil {
			ui.Fprintf(w, "%s would take cluster %s over from %s: %s.\n", r.To, r.Cluster, r.From, countsText(r.Plan.Counts))
			for _, wait := range r.Plan.Waits {
				ui.Fprintf(w, "It would wait: %s\n", wait)
			}
			for _, left := range r.Plan.Left {
				ui.Fprintf(w, "It cannot take along: %s\n", left)
			}
			for _, note := range r.Plan.Untried {
				ui.Fprintf(w, "Not known: %s\n", note)
			}
		} else {
			ui.Fprintf(w, "%s has taken cluster %s over from %s. Still to do: change the fleet repo.\n", r.To, r.Cluster, r.From)
		}
	case "undone":
		if r.SourceIsGone {
			ui.Fprintf(w, "%s has no copies of cluster %s any more. Nobody manages the cluster while %s is gone.\n", r.To, r.Cluster, r.From)
		} else {
			ui.Fprintf(w, "%s manages cluster %s again, as before.\n", r.From, r.Cluster)
		}
	case "nothing-to-do":
		ui.Fprintf(w, "No transfer of cluster %s was under way.\n", r.Cluster)
	case "handed-over":
		ui.Fprintf(w, "%s manages cluster %s. The branch that Flux follows does not say so yet: no Flux changes the cluster until "+
			"it does.\n", r.To, r.Cluster)
	default:
		ui.Fprintf(w, "%s manages cluster %s, and %s no longer knows it.\n", r.To, r.Cluster, r.From)
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}

func drillView(w io.Writer, r *pivot.DrillResult) error {
	if s := r.Snapshot; s != nil {
		ui.Fprintf(w, "Snapshot %s of %s, taken %s by %s: %s\n", s.ID, r.Cluster, s.Taken.Format(time.RFC3339), s.By, countsText(s.Counts))
	}
	if len(r.Restored) > 0 && r.Standby != "" {
		ui.Fprintf(w, "Restored on the standby %s while no controller could act, found equal to the snapshot, and removed again: %s, in %s.\n",
			r.Standby, countsText(r.Restored), plain.Count(r.Seconds, "second"))
	} else if len(r.Restored) > 0 {
		ui.Fprintf(w, "Restored on a temporary host while no controller could act, and found equal to the snapshot: %s, in %s.\n",
			countsText(r.Restored), plain.Count(r.Seconds, "second"))
	}
	for _, finding := range r.Findings {
		ui.Fprintf(w, "%s: %s\n", finding.Severity, finding.Summary)
		if finding.Hint != "" {
			ui.Fprintf(w, "  hint: %s\n", finding.Hint)
		}
	}
	what := "A restore"
	if r.Standby != "" {
		what = "Taking over"
	}
	if len(r.Elsewhere) > 0 {
		ui.Fprintf(w, "%s also needs the following, which neither Git nor the snapshot has:\n", what)
	}
	for _, needed := range r.Elsewhere {
		ui.Fprintf(w, "  %s\n", needed)
	}
	if !r.Works {
		ui.Fprintf(w, "%s would not work today.\n", what)
		return nil
	}
	ui.Fprintf(w, "%s would work.\n", what)
	return nil
}
