package handover

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
)

// rounds bounds how often fenced lists the source's objects again. A round pauses the Clusters that appeared before the
// fence closed. No object can appear once the fence is closed.
const rounds = 4

// fence keeps everybody but this run from the source's objects. It returns the objects that are handed over, as they
// are behind the fence.
func (r *run) fence(ctx context.Context) (*capi.Graph, error) {
	if err := r.takeOverFences(ctx); err != nil {
		return nil, err
	}
	graph, err := r.source.manager.Graph(ctx, r.graphOptions())
	if err != nil {
		return nil, err
	}
	// Both sides at once: most of the time passes until API servers have noticed the policy, and processes have ended.
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() error { return r.fenceSource(bothCtx, graph) })
	if r.target != nil {
		both.Go(func() error { return r.stand(bothCtx, graph) })
	}
	if err := both.Wait(); err != nil {
		return nil, err
	}
	return r.fenced(ctx)
}

func (r *run) fenceSource(ctx context.Context, graph *capi.Graph) error {
	if err := r.bypass(ctx, r.source, graph.Groups); err != nil {
		return err
	}
	if _, err := r.quieten(ctx, graph); err != nil {
		return err
	}
	if err := r.waitMovable(ctx, graph); err != nil {
		return err
	}
	if r.whole() {
		if err := r.halt(ctx, r.source, r.source.manager.ProviderDeployments); err != nil {
			return err
		}
	}
	return r.source.raise(ctx, r.sourcePolicy(graph))
}

// fenced lists the objects again behind the fence, and returns this list: nobody can add objects to it any more.
func (r *run) fenced(ctx context.Context) (*capi.Graph, error) {
	r.source.manager.Forget()
	for range rounds {
		graph, err := r.source.manager.Graph(ctx, r.graphOptions())
		if err != nil {
			return nil, err
		}
		changed, err := r.quieten(ctx, graph)
		if err != nil {
			return nil, err
		}
		if changed == 0 {
			return graph, r.note(ctx, graph)
		}
	}
	return nil, diag.Errorf("find out who writes to these objects", "the objects at %s keep changing behind the fence", r.source.Name)
}

// note writes the objects that were found behind the fence into the journals.
func (r *run) note(ctx context.Context, graph *capi.Graph) error {
	for _, s := range r.sides() {
		next := *s.journal
		next.Moved, next.Groups, next.Clusters = graph.Counts(), graph.Groups, graph.Clusters()
		if next.same(s.journal) {
			continue
		}
		if err := s.put(ctx, &next); err != nil {
			return err
		}
	}
	return nil
}

// quieten suspends Flux and pauses the Clusters. It returns the number of objects that it had to change.
func (r *run) quieten(ctx context.Context, graph *capi.Graph) (int, error) {
	r.tell(PhaseFenced, "suspending Flux and pausing the Clusters of "+r.source.Name)
	suspended := 0
	if r.whole() {
		refs, err := flux.NewSystem(r.source.as).Suspend(ctx)
		if err != nil {
			return 0, err
		}
		suspended = len(refs)
	}
	paused, err := r.source.manager.Pause(ctx, graph)
	return suspended + paused, err
}

func (r *run) waitMovable(ctx context.Context, graph *capi.Graph) error {
	ctx, cancel := context.WithTimeout(ctx, r.BlockMove)
	defer cancel()
	err := r.source.manager.WaitMovable(ctx, graph, func(detail string) { r.tell(PhaseFenced, detail) })
	return diag.Wrap("fence "+r.source.Name, err, "`kubectl describe` shows why its provider blocks the move; "+r.undoHint())
}

// bypass lets the hand-over's writes skip the webhooks of one side. Before that, it stops the controllers that would
// overwrite the webhook configurations.
func (r *run) bypass(ctx context.Context, s *side, groups []string) error {
	if err := r.halt(ctx, s, s.manager.Injectors); err != nil {
		return err
	}
	return s.bypass(ctx, groups, r.admitted(s))
}

// admitted returns the namespace whose service accounts may write behind the fence of one side, or "" for none.
func (r *run) admitted(s *side) string {
	if s.journal == nil || !s.journal.Around {
		return ""
	}
	return s.journal.Admit
}

// halt stops the given controllers of one side.
func (r *run) halt(ctx context.Context, s *side, which func(context.Context) ([]appsv1.Deployment, error)) error {
	ctx, cancel := context.WithTimeout(ctx, r.Drain)
	defer cancel()
	deployments, err := which(ctx)
	if err == nil {
		err = s.halt(ctx, deployments, func(detail string) { r.tell(PhaseFenced, s.Name+": "+detail) })
	}
	return diag.Wrap("stop the controllers of "+s.Name, err, "")
}

// whole tells whether the source hands over all of its Clusters.
func (r *run) whole() bool { return len(r.Select) == 0 }

func (r *run) sourcePolicy(graph *capi.Graph) policy {
	p := policy{user: r.source.journal.user(), groups: graph.Groups, command: r.source.journal.Command()}
	if r.whole() {
		return p
	}
	for _, key := range r.Select {
		if !slices.Contains(p.namespaces, key.Namespace) {
			p.namespaces = append(p.namespaces, key.Namespace)
		}
	}
	return p
}

func (r *run) targetPolicy(groups []string) policy {
	if j := r.target.journal; j.IsStandby() {
		return standbyPolicy(j)
	}
	if j := r.target.journal; j.Around {
		p := policy{user: j.user(), groups: j.Groups, command: j.Command()}
		if !j.Phase.reached(PhaseCopied) && j.Phase != PhaseAborting {
			p.admit = j.Admit
		}
		return p
	}
	return policy{user: r.target.journal.user(), groups: groups, copies: r.target.journal.ID, command: r.target.journal.Command()}
}

// takeOverFences changes the fences of an earlier run, so that they admit the user of this run and no longer that of the
// earlier run.
func (r *run) takeOverFences(ctx context.Context) error {
	for _, s := range r.sides() {
		fenced, err := s.isFenced(ctx)
		if err != nil {
			return err
		}
		if !fenced || s.journal == nil || s.borrowed { // an abort that was cut off has deleted the journal after the fence
			continue
		}
		var p policy
		if s == r.source { // the target may have no journal any more
			p = r.sourcePolicy(&capi.Graph{Groups: s.journal.Groups})
		} else {
			p = r.targetPolicy(s.journal.Groups)
		}
		if err := s.raise(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
