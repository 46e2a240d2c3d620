package handover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Plan says what a hand-over would do.
type Plan struct {
	Source string `json:"source"`
	Target string `json:"target"`
	// UnderWay is the phase of a hand-over that Run would continue; "" if Run would begin one.
	UnderWay Phase `json:"underWay,omitempty"`
	// Counts of the objects by kind, and the Clusters.
	Counts   map[string]int `json:"counts"`
	Clusters []string       `json:"clusters"`
	// Waits says what the hand-over would wait for. Left says which objects cannot be handed over. Untried says of which
	// objects a dry run cannot tell whether the target takes them and the source lets them go.
	Waits   []string `json:"waits"`
	Left    []string `json:"left"`
	Untried []string `json:"untried"`

	graph *capi.Graph
	state *capi.Movable
	// taker and loser have tried what the hand-over does at the target and at the source.
	taker, loser *tester
	later        []*capi.Item // what is tried once the target has its namespaces
}

// Travels returns a function that tells whether an object of the source would be handed over. The function ignores the
// version of the object's kind.
func (p *Plan) Travels() func(kube.Ref) bool {
	items := map[kube.Ref]bool{}
	if p.graph != nil {
		for _, item := range p.graph.Items {
			ref := kube.RefOf(item.Unstructured)
			ref.Version = ""
			items[ref] = true
		}
	}
	return func(ref kube.Ref) bool {
		ref.Version = ""
		return items[ref]
	}
}

// Look finds out what a hand-over would do, and changes nothing. The error names every reason why a hand-over is not
// possible. With an error, Look returns as much of the plan as it could make.
func Look(ctx context.Context, o Options) (*Plan, error) {
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.committed() {
		return r.goingOn(r.target.journal), nil
	}
	if r.source.journal.Active() {
		return r.goingOn(r.source.journal), nil
	}
	return r.plan(ctx)
}

// goingOn returns the plan of a hand-over that has begun.
func (r *run) goingOn(j *Journal) *Plan {
	p := &Plan{
		Source: j.Source.Name, Target: j.Target.Name, UnderWay: j.Phase, Counts: map[string]int{},
		Waits: []string{}, Left: []string{}, Untried: []string{},
	}
	maps.Copy(p.Counts, j.Moved)
	p.Clusters = append([]string{}, j.Clusters...)
	return p
}

// plan looks at both sides.
func (r *run) plan(ctx context.Context) (*Plan, error) {
	p := &Plan{
		Source: r.source.Name, Target: r.target.Name, Counts: map[string]int{}, Clusters: []string{},
		Waits: []string{}, Left: []string{}, Untried: []string{},
	}
	if j := r.source.journal; j != nil && j.Role == RoleSource && j.Whole() {
		return p, handedOver(r.source.Name, j)
	}
	if j := r.target.journal; !r.whole() && j != nil && j.Role == RoleSource && j.Whole() {
		return p, handedOver(r.target.Name, j)
	}
	var err error
	if p.graph, err = r.source.manager.Graph(ctx, r.graphOptions()); err != nil {
		return p, err
	}
	p.Counts, p.Left = p.graph.Counts(), append(p.Left, p.graph.Missing...)
	p.Clusters = p.graph.Clusters()
	if p.state, err = capi.LookMovable(ctx, r.source.manager, r.target.manager, p.graph, r.whole()); err != nil {
		return p, err
	}
	p.Waits = append(p.Waits, p.state.Waits...)
	errs := append([]error{r.selected(p.Clusters)}, p.state.Against...)
	if len(p.state.Against) == 0 {
		unserved, err := r.target.unserved(ctx, p.graph)
		if err != nil {
			return p, err
		}
		errs = append(errs, unserved...)
	}
	taken, unlike, err := r.target.manager.Conflicts(ctx, p.graph, "")
	if err != nil {
		return p, err
	}
	for _, ref := range taken {
		errs = append(errs, fmt.Errorf("%s already exists at the target", ref))
	}
	if !r.whole() {
		for _, ref := range unlike {
			errs = append(errs, fmt.Errorf("%s exists at the target with other content: make both equal, or rename one of them", ref))
		}
	}
	unready := r.unready(ctx)
	errs = append(errs, unready)
	var refused []error
	if unready == nil {
		if refused, err = r.try(ctx, p); err != nil {
			return p, err
		}
	}
	hint := "`fleetctl status` shows the state of the clusters; nothing has been changed"
	if len(refused) > 0 {
		hint = admitHint + "; nothing has been changed"
	}
	if err := errors.Join(append(errs, refused...)...); err != nil {
		return p, diag.Wrap("prepare the hand-over", err, hint)
	}
	return p, nil
}

// unready returns what the sides lack for a hand-over.
func (r *run) unready(ctx context.Context) error {
	sides := r.sides()
	return kube.Each(len(sides), sides, func(s *side) error { return s.ready(ctx) })
}

// try finds out in dry runs what the target would refuse to create, and what the source would refuse to let go.
func (r *run) try(ctx context.Context, p *Plan) (refused []error, err error) {
	p.taker, p.loser = r.target.newTaker(p.graph, p.state.Hold), r.source.newLoser(p.graph)
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() (err error) { p.later, err = p.taker.run(bothCtx); return err })
	both.Go(func() error { return p.loser.part(bothCtx) })
	if err := both.Wait(); err != nil {
		return nil, err
	}
	p.Untried = append(append(p.Untried, p.taker.notes()...), p.loser.notes()...)
	if names := p.taker.newNamespaces(p.later); len(names) > 0 {
		p.Untried = append(p.Untried, laterNote(p.Target, names))
	}
	return append(p.taker.errs(), p.loser.errs()...), nil
}

// selected returns an error that names the selected Clusters which do not exist.
func (r *run) selected(there []string) error {
	var errs []error
	for _, key := range r.Select {
		if !slices.Contains(there, key.String()) {
			errs = append(errs, fmt.Errorf("%s has no Cluster %s", r.source.Name, key))
		}
	}
	return errors.Join(errs...)
}

func handedOver(name string, j *Journal) error {
	return diag.Errorf("work with "+j.Target.Name+" from now on; `fleetctl teardown` ends "+name,
		"%s has handed its work over to %s", name, j.Target.Name)
}

func (r *run) graphOptions() capi.GraphOptions {
	return capi.GraphOptions{Clusters: r.Select, WithFlux: len(r.Select) == 0}
}

// settled waits for operations that a pause would interrupt.
func (r *run) settled(ctx context.Context, p *Plan) error {
	if len(p.Waits) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Drain)
	defer cancel()
	r.tell(PhasePlanned, "waiting: "+strings.Join(p.Waits, "; "))
	if err := r.source.manager.WaitSettled(ctx, p.graph); err != nil {
		return &diag.Error{
			Op: "prepare the hand-over", Err: fmt.Errorf("%s: %w", strings.Join(p.Waits, "; "), err), Code: diag.ExitNotReady,
			Hint: "wait until the clusters are Available; `fleetctl status` shows their state",
		}
	}
	return nil
}

// begin writes the journals of a new hand-over, or takes over the current one.
func (r *run) begin(ctx context.Context) error {
	if !r.source.journal.Active() {
		if err := r.beginNew(ctx); err != nil {
			return err
		}
		r.began = true
		return r.become()
	}
	if !r.target.journal.Active() { // the earlier run was cut off between the two writes
		if err := r.noteTarget(ctx); err != nil {
			return err
		}
	}
	return r.act(ctx)
}

func (r *run) beginNew(ctx context.Context) error {
	plan, err := r.plan(ctx)
	if err != nil {
		return err
	}
	if err := r.settled(ctx, plan); err != nil {
		return err
	}
	for _, left := range plan.Left {
		r.warn("%s", left)
	}
	for _, s := range r.sides() { // both before the first journal: if one side refuses the namespace, the other side has no journal
		if err := s.opened(ctx); err != nil {
			return diag.Wrap("prepare the hand-over", err, "")
		}
	}
	if err := plan.taker.into(ctx, plan.later); err != nil {
		return diag.Wrap("prepare the hand-over", err, "")
	}
	for _, note := range slices.Concat(plan.taker.notes(), plan.loser.notes()) {
		r.warn("%s", note)
	}
	j := r.newJournal(RoleSource, plan.graph)
	j.Source, j.Target, j.Owner, j.Hold = r.source.party, r.target.party, r.source.party, plan.state.Hold
	j.Epoch, j.Available, j.Select = plan.state.Epoch, plan.state.Available, r.selection()
	if j.Owners, j.Pause, err = r.askOwners(ctx, j.Clusters); err != nil {
		return err
	}
	j.over(r.source.journal)
	if err := r.source.put(ctx, j); err != nil {
		return err
	}
	return r.noteTarget(ctx)
}

// newJournal returns the journal of a new hand-over of the graph's objects.
func (r *run) newJournal(role Role, graph *capi.Graph) *Journal {
	return &Journal{
		FormatVersion: "1", ID: time.Now().UTC().Format("20060102150405") + "-" + strings.ToLower(r.runner), Role: role, Phase: PhasePlanned,
		Fleet: r.Fleet, Runner: r.runner, By: r.by, Moved: graph.Counts(), Clusters: graph.Clusters(), Groups: graph.Groups,
		Activates: r.Target.Standby, Tries: r.tries,
	}
}

// selection returns the Clusters of Select as NAMESPACE/NAME; nil for all.
func (r *run) selection() []string {
	var names []string
	for _, key := range r.Select {
		names = append(names, key.String())
	}
	return names
}

// noteTarget writes the source's journal at the target.
func (r *run) noteTarget(ctx context.Context) error {
	next := *r.source.journal
	next.Role, next.Phase = RoleTarget, PhasePlanned
	next.over(r.target.journal)
	return r.target.put(ctx, &next)
}
