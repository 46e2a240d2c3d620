package handover

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Detach removes the Clusters of o.Select from o.Source. The machines and networks of these Clusters stay as they are,
// and no management cluster manages them any more. Detach fences the source and removes the objects, as a hand-over
// does. If the source's journal names an interrupted Detach of these Clusters, Detach continues it. Objects that other
// Clusters of the source use too stay at the source.
func Detach(ctx context.Context, o Options) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Source)
	o.Progress = tell
	defer func() { err = named(err) }()
	if len(o.Select) == 0 {
		return nil, diag.Usage("name a cluster", "nothing is selected")
	}
	r, err := openSource(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := r.beginDetach(ctx); err != nil {
		return r.report(), err
	}
	if r.undoing() { // the earlier abort was cut off: finish it, then begin again
		if _, err := r.abortAlone(ctx); err != nil {
			return r.report(), err
		}
		return Detach(ctx, o)
	}
	if r.source.journal.Phase == PhasePlanned {
		graph, err := r.fence(ctx)
		if err != nil {
			return r.report(), err
		}
		// An interrupted removal leaves objects whose links to each other are gone. So each object gets a mark before
		// the removal, by which the next run finds it.
		if err := r.source.manager.Mark(ctx, graph, r.source.journal.ID); err != nil {
			return r.report(), err
		}
		if err := r.mark(ctx, PhaseFenced); err != nil {
			return r.report(), err
		}
	}
	r.recordDetached(ctx)
	report := r.report()
	return report, r.detach(ctx)
}

// beginDetach writes the journal, or takes over the journal of an earlier run.
func (r *run) beginDetach(ctx context.Context) error {
	j := r.source.journal
	switch {
	case j.Active() && j.Detach && slices.Equal(j.Select, r.selection()):
		if err := r.act(ctx); err != nil {
			return err
		}
		return r.takeOverFences(ctx)
	case j.Active() && j.Detach:
		return BeingDetached(r.source.Name, j)
	case j.Active():
		return InTheMiddle(r.source.Name, j)
	case j != nil && j.Role == RoleSource && j.Whole():
		return handedOver(r.source.Name, j)
	}
	graph, err := r.source.manager.Graph(ctx, r.graphOptions())
	if err != nil {
		return err
	}
	if err := r.selected(graph.Clusters()); err != nil {
		return err
	}
	notes, err := r.tryDetach(ctx, graph)
	if err != nil {
		return err
	}
	for _, note := range notes {
		r.warn("%s", note)
	}
	next := r.newJournal(RoleSource, graph)
	next.Source, next.Owner, next.Select, next.Detach, next.Epoch = r.source.party, r.source.party, r.selection(), true, graph.Epoch()
	next.Left = remnants(graph)
	next.over(j)
	if err := r.source.put(ctx, next); err != nil {
		return err
	}
	return r.become()
}

// tryDetach finds out what the source would refuse to do or to let go, in dry runs.
func (r *run) tryDetach(ctx context.Context, graph *capi.Graph) (notes []string, err error) {
	if err := r.source.ready(ctx); err != nil {
		return nil, r.undetachable(err)
	}
	return r.tryParting(ctx, graph)
}

// tryParting is tryDetach for a source that is ready.
func (r *run) tryParting(ctx context.Context, graph *capi.Graph) (notes []string, err error) {
	t := r.source.newLoser(graph)
	if err = t.part(ctx); err == nil {
		err = t.refusal()
	}
	return t.notes(), r.undetachable(err)
}

func (r *run) undetachable(err error) error {
	return diag.Wrap("prepare to detach the clusters from "+r.source.Name, err, "")
}

// detach removes the marked objects, and takes the fence down.
func (r *run) detach(ctx context.Context) error {
	marked, err := r.source.manager.Copies(ctx, r.source.journal.ID)
	if err != nil {
		return err
	}
	progress := r.count(PhaseReleased, "removing the objects of the detached clusters from "+r.source.Name)
	if err := r.source.manager.Remove(ctx, marked, progress); err != nil {
		return err
	}
	if err := r.nothingLeft(ctx, marked); err != nil {
		return err
	}
	if err := r.unfence(ctx, r.source); err != nil {
		return err
	}
	return r.putBack(ctx, r.source)
}

// LookDetach finds out what a Detach of o.Select would do, and changes nothing. It returns the machines of these
// Clusters: they keep running, and the user needs this list to manage them by other means. The notes say what no dry run
// can tell, and what the source or the user's rights lack for a Detach: everybody who may read the objects may look. The
// error names what the source would refuse.
func LookDetach(ctx context.Context, o Options) (left []Remnant, notes []string, err error) {
	return lookDetach(ctx, o, func(r *run, graph *capi.Graph) ([]string, error) {
		err := r.source.ready(ctx)
		if err == nil {
			return r.tryParting(ctx, graph)
		}
		if ctx.Err() != nil || kube.IsUnreachable(err) {
			return nil, r.undetachable(err)
		}
		return []string{"this user cannot detach the clusters from " + r.source.Name + ", and what " + r.source.Name +
			" would refuse was not tried: " + strings.ReplaceAll(diag.InLine(err), "\n", "; ")}, nil
	})
}

// CheckDetach is LookDetach for a caller that goes on with Detach: what the source or the user's rights lack is an error.
func CheckDetach(ctx context.Context, o Options) (left []Remnant, err error) {
	left, _, err = lookDetach(ctx, o, func(r *run, graph *capi.Graph) ([]string, error) { return r.tryDetach(ctx, graph) })
	return left, err
}

func lookDetach(
	ctx context.Context, o Options, try func(*run, *capi.Graph) ([]string, error),
) (left []Remnant, notes []string, err error) {
	r, err := openSource(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	graph, err := r.source.manager.Graph(ctx, r.graphOptions())
	if err != nil {
		return nil, nil, err
	}
	notes, err = try(r, graph)
	return remnants(graph), notes, err
}

// remnants returns the machines in graph.
func remnants(graph *capi.Graph) []Remnant {
	remnants := []Remnant{}
	for _, item := range graph.Items {
		id, _, _ := unstructured.NestedString(item.Object, "spec", "providerID")
		if id == "" || item.GetKind() != "Machine" && item.GetKind() != "MachinePool" {
			continue
		}
		remnants = append(remnants, Remnant{Kind: item.GetKind(), Name: item.Ref().Key.String(), ProviderID: id})
	}
	return remnants
}

// Remnant is a machine that no management cluster manages any more.
type Remnant struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	ProviderID string `json:"providerID"`
}
