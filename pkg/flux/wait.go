package flux

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	// settle is how long the waiter collects events before it evaluates them, because one change causes several events.
	settle = 50 * time.Millisecond
	// nudgeEvery is how often a failed Kustomization is made to try again. By itself it tries at its interval, which is ten minutes for
	// flux-system.
	nudgeEvery = 15 * time.Second
)

// WaitOptions of WaitSynced.
type WaitOptions struct {
	// Commit to wait for, a full hash.
	Commit string
	// Includes, if not nil, tells whether the commit newer, which Flux has fetched, has Commit in its history. Then WaitSynced waits for
	// newer instead. Without Includes it would never return after another commit was pushed.
	Includes func(ctx context.Context, newer string) (bool, error)
	// Detail, if not nil, is called with the object that WaitSynced waits for.
	Detail func(string)
}

// WaitSynced waits until the GitRepository flux-system has fetched the commit, the Kustomization flux-system has applied it, and all
// Kustomizations, HelmReleases and sources that it applied, directly or through others, are Ready at their newest generation and at the
// revision of their source. It does not wait for objects that the user suspended, or that have the WorkloadLabel. It makes Flux fetch at
// once.
//
// A failure does not end the wait, because Flux tries again, and a fix in Git may follow. opts.Detail reports it. If ctx ends first, the
// error has a kube.NotReadyError with each object and its reason, and the exit code diag.ExitNotReady.
func (s *System) WaitSynced(ctx context.Context, opts WaitOptions) error {
	if opts.Detail == nil {
		opts.Detail = func(string) {}
	}
	if err := s.Reconcile(ctx); err != nil {
		return err
	}
	w := &waiter{
		system: s, commit: opts.Commit, includes: opts.Includes, detail: opts.Detail, world: world{}, changed: make(chan struct{}, 1),
		nudged: map[kube.Ref]time.Time{},
	}
	return w.run(ctx)
}

// Synced tells whether WaitSynced would return at once. It is false for a cluster without Flux.
func (s *System) Synced(ctx context.Context, commit string) (bool, error) {
	w, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	return len(w.pending(commit)) == 0, nil
}

// waiter watches Flux's objects until none is pending.
type waiter struct {
	system *System
	commit string
	// includes is called once for each fetched commit that is not the wanted one. refused is the last commit for which it returned false.
	includes func(context.Context, string) (bool, error)
	refused  string
	detail   func(string)

	mu      sync.Mutex
	world   world
	seen    int // kinds that have been listed
	changed chan struct{}

	nudged map[kube.Ref]time.Time
	told   string
}

func (w *waiter) run(ctx context.Context) error {
	watchCtx, stop := context.WithCancel(ctx)
	group, watchCtx := errgroup.WithContext(watchCtx)
	for _, gvk := range allKinds() {
		group.Go(func() error { return w.follow(watchCtx, gvk) })
	}
	missing, done := w.evaluate(watchCtx)
	stop()
	err := group.Wait()
	switch {
	case done:
		return nil
	case ctx.Err() == nil:
		return fmt.Errorf("watch Flux: %w", err)
	}
	cause := context.Cause(ctx)
	if len(missing) > 0 {
		cause = fmt.Errorf("%w: %w", cause, missing)
	}
	return &diag.Error{
		Op: "wait until Flux has applied " + shortCommit(w.commit), Err: cause,
		Hint: cmp.Or(resumeHint(missing), "fix the reason in the fleet repo, or run the same command again to go on waiting"),
		Code: diag.ExitNotReady,
	}
}

// follow keeps the objects of one kind up to date until ctx ends. A kind that the cluster does not know stays empty.
func (w *waiter) follow(ctx context.Context, gvk schema.GroupVersionKind) error {
	first := true
	put := func(objects kube.Objects) {
		w.mu.Lock()
		w.world[gvk] = maps.Clone(objects)
		if first {
			w.seen++
			first = false
		}
		w.mu.Unlock()
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	err := w.system.client.Watch(ctx, gvk, kube.Selection{}, func(objects kube.Objects) (bool, error) {
		put(objects)
		return false, nil
	})
	if kube.IsAbsent(err) {
		put(nil)
		return nil
	}
	return err
}

// evaluate evaluates the objects after each change, until none is pending or ctx ends. It returns the objects that were last pending.
func (w *waiter) evaluate(ctx context.Context) (missing kube.NotReadyError, done bool) {
	again := time.NewTicker(nudgeEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return missing, false
		case <-w.changed:
		case <-again.C:
		}
		select { // more events of the same change follow at once
		case <-ctx.Done():
			return missing, false
		case <-time.After(settle):
		}
		w.mu.Lock()
		now, complete := maps.Clone(w.world), w.seen == len(allKinds())
		w.mu.Unlock()
		if !complete {
			continue
		}
		w.follows(ctx, now)
		if missing = now.pending(w.commit); len(missing) == 0 {
			return nil, true
		}
		w.tell(missing)
		w.nudge(ctx, now, missing)
	}
}

// follows makes the commit that Flux has fetched the wanted one, if it has the wanted one in its history.
func (w *waiter) follows(ctx context.Context, now world) {
	fetched := now.fetched()
	if w.includes == nil || fetched == "" || fetched == w.commit || fetched == w.refused {
		return
	}
	newer, err := w.includes(ctx, fetched)
	switch {
	case err != nil:
		w.detail(fmt.Sprintf("cannot tell whether %s builds on %s: %v", shortCommit(fetched), shortCommit(w.commit), err))
	case newer:
		w.commit = fetched
	default:
		w.refused = fetched
	}
}

// tell calls detail when the pending objects have changed.
func (w *waiter) tell(missing kube.NotReadyError) {
	text := fmt.Sprintf("waiting for %s: %s", missing[0].Ref, missing[0].Reason)
	if more := len(missing) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	if text != w.told {
		w.told = text
		w.detail(text)
	}
}

// nudge makes Flux try failed objects again, because a webhook may not have answered yet, and objects that stay at another revision than
// their source: see kustomizationLate.
func (w *waiter) nudge(ctx context.Context, now world, missing kube.NotReadyError) {
	for _, m := range missing {
		if m.GroupVersionKind != kustomizationKind && m.GroupVersionKind != gitRepositoryKind {
			continue
		}
		obj := now[m.GroupVersionKind][m.Key]
		if obj == nil {
			continue
		}
		ready := apimeta.FindStatusCondition(kube.Conditions(obj), fluxmeta.ReadyCondition)
		if ready == nil || ready.Status == metav1.ConditionUnknown {
			continue // it is at work
		}
		switch last, known := w.nudged[m.Ref]; {
		case !known:
			w.nudged[m.Ref] = time.Now() // Flux's own first retry may come sooner
		case time.Since(last) >= nudgeEvery:
			w.nudged[m.Ref] = time.Now()
			if err := w.system.request(ctx, m.Ref); err != nil && ctx.Err() == nil {
				w.detail(fmt.Sprintf("cannot ask Flux to try %s again: %v", m.Ref, err))
			}
		}
	}
}
