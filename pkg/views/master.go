package views

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/masters"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Master is what `fleetctl bootstrap --stand-alone` has done.
func Master(r *masters.Result) View {
	return view{r, func(p *Page) error { return masterView(p, r) }}
}

func masterView(p *Page, r *masters.Result) error {
	for _, c := range r.Changes {
		if err := changeView(p.Out, p.Streams, c, p.Verbose); err != nil {
			return err
		}
	}
	if r.Error != "" {
		return nil // the kubeconfig is printed after this
	}
	if len(r.HandedOver) > 0 {
		ui.Fprintf(p.Out, "%s has taken over from %s: %s\n", r.Cluster, r.Parent, strings.Join(r.HandedOver, ", "))
	}
	if r.Repo != "" {
		ui.Fprintf(p.Out, "It has its own fleet repo, cloned to %s\n", r.Repo)
	}
	ui.Fprintf(p.Out, "The management cluster %s stands alone. Its kubeconfig: %s\n", r.Cluster, r.Kubeconfig)
	switch {
	case len(r.ParentLeft) > 0:
		ui.Fprintf(p.Out, "This machine has forgotten %s, which made it; these remain of it: %s\n", r.Parent,
			strings.Join(r.ParentLeft, "; "))
	case r.ParentGone:
		ui.Fprintf(p.Out, "%s, which made it, is deleted.\n", r.Parent)
	case len(r.ParentKeeps) > 0:
		ui.Fprintf(p.Out, "%s, which made it, is kept, because no other management cluster has these clusters: %s\n", r.Parent,
			strings.Join(r.ParentKeeps, ", "))
	default:
		ui.Fprintf(p.Out, "%s, which made it, was not torn down in this run.\n", r.Parent)
	}
	for _, next := range r.Next {
		ui.Fprintf(p.Out, "  %s\n", next)
	}
	return nil
}
