package flux

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	// settle gathers the events of one change of the world before it is looked at.
	settle = 50 * time.Millisecond
	// nudgeEvery is how often a Kustomization that failed is asked to try again. By itself it does so at its interval, which for
	// flux-system is ten minutes.
	nudgeEvery = 15 * time.Second
)

// WaitOptions of WaitSynced.
type WaitOptions struct {
	// Commit to wait for, a full hash.
	Commit string
	// Includes, if not nil, tells whether another commit that Flux has fetched builds on Commit: then that is as good. Without it, a
	// commit that somebody pushes meanwhile is waited past for ever.
	Includes func(ctx context.Context, newer string) (bool, error)
	// Detail, if not nil, is told what is waited for.
	Detail func(string)
}

// WaitSynced waits until the GitRepository flux-system has fetched the commit, the Kustomization flux-system has applied it, and all the Kustomizations, HelmReleases and sources that this applied, and those in turn, are Ready at their newest
// generation and at the revision of their source. What the user suspended is not waited for, nor what carries the WorkloadLabel. It asks Flux
// to look at once.
//
// A failure does not end the wait, for Flux tries again and so does a fix in Git: opts.Detail is told of it. When ctx ends before, the error lists each object with its reason (kube.NotReadyError) and asks for the exit code of something not ready.
func (s *System) WaitSynced(ctx context.Context, opts WaitOptions) error {
	if opts.Detail == nil {
		opts.Detail = func(string) {}
	}
	if err := s.Reconcile(ctx); err != nil {
		return err
	}
	w := &waiter{system: s, commit: opts.Commit, includes: opts.Includes, detail: opts.Detail, world: world{}, changed: make(chan struct{}, 1), nudged: map[kube.Ref]time.Time{}}
	return w.run(ctx)
}

// Synced tells whether WaitSynced has nothing to wait for now. A cluster without Flux is not synced.
func (s *System) Synced(ctx context.Context, commit string) (bool, error) {
	w, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	return len(w.pending(commit)) == 0, nil
}

// waiter follows the world until nothing is pending.
type waiter struct {
	system *System
	commit string
	// includes is asked once for each commit that is not the wanted one; refused is the last that it said no to.
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
		Hint: "fix the reason in the fleet repo, or run the same command again to go on waiting", Code: diag.ExitNotReady,
	}
}

// follow keeps the objects of one kind up to date until ctx ends. A kind that the cluster does not have stays empty.
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

// evaluate looks at the world after each change until nothing is pending or ctx ends. It returns what was pending last.
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

// follows waits for a newer commit from here on, if Flux has fetched one that builds on the wanted one.
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

// tell passes on what is waited for when that changes.
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

// nudge asks for another try of what has failed: a Kustomization may have met a webhook that did not answer yet.
func (w *waiter) nudge(ctx context.Context, now world, missing kube.NotReadyError) {
	for _, m := range missing {
		if m.GroupVersionKind != kustomizationKind && m.GroupVersionKind != gitRepositoryKind {
			continue
		}
		obj := now[m.GroupVersionKind][m.Key]
		if obj == nil {
			continue
		}
		ready := findCondition(kube.Conditions(obj), "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse {
			continue
		}
		switch last, known := w.nudged[m.Ref]; {
		case !known:
			w.nudged[m.Ref] = time.Now() // its own first retry may come sooner
		case time.Since(last) >= nudgeEvery:
			w.nudged[m.Ref] = time.Now()
			if err := w.system.request(ctx, m.Ref); err != nil && ctx.Err() == nil {
				w.detail(fmt.Sprintf("cannot ask Flux to try %s again: %v", m.Ref, err))
			}
		}
	}
}
