package views

import (
	"io"
	"time"

	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Activation is the output of `fleetctl standby activate`: the standby that has taken over, or would.
func Activation(r *pivot.ActivateResult) View { return of(r, activationView) }

func activationView(w io.Writer, r *pivot.ActivateResult) error {
	switch r.Outcome {
	case "planned":
		if r.Plan != nil {
			ui.Fprintf(w, "%s would take over from %s, which still runs: %s\n", r.Cluster, r.Of, countsText(r.Plan.Counts))
			for _, wait := range r.Plan.Waits {
				ui.Fprintf(w, "It would wait: %s\n", wait)
			}
			for _, left := range r.Plan.Left {
				ui.Fprintf(w, "It cannot take along: %s\n", left)
			}
			for _, note := range r.Plan.Untried {
				ui.Fprintf(w, "Not known: %s\n", note)
			}
		} else if s := r.Snapshot; s != nil {
			ui.Fprintf(w, "%s would take over from %s with the snapshot %s, taken %s by %s: %s\n", r.Cluster, r.Of, s.ID,
				s.Taken.Format(time.RFC3339), s.By, countsText(s.Counts))
		} else {
			ui.Fprintf(w, "%s has taken over from %s. Still to do: connect Flux, and change the fleet repo.\n", r.Cluster, r.Of)
		}
	case "undone":
		ui.Fprintf(w, "%s is a standby of %s again, as before.\n", r.Cluster, r.Of)
	case "nothing-to-do":
		ui.Fprintf(w, "%s is a standby of %s; no activation was under way.\n", r.Cluster, r.Of)
	default:
		if r.Report == nil {
			ui.Fprintf(w, "%s has taken over from %s before: there is nothing to do.\n", r.Cluster, r.Of)
			break
		}
		ui.Fprintf(w, "%s has taken over from %s: %s\n", r.Cluster, r.Of, countsText(r.Report.Moved))
		ui.Fprintf(w, "In fleet.yaml it replaces %s. Its kubeconfig: %s\n", r.Of, r.Kubeconfig)
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}
