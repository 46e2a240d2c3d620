package flux

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// WaitHealthy waits until a Report of Flux is Healthy. If ctx ends first, it returns the cause.
func (s *System) WaitHealthy(ctx context.Context) error {
	watchCtx, stop := context.WithCancel(ctx)
	defer stop()
	kinds := append(allKinds(), kube.DeploymentKind)
	changed := make(chan struct{}, 1)
	var unread atomic.Int64 // kinds that have not been listed yet: their lists are no changes
	unread.Store(int64(len(kinds)))
	group, watchCtx := errgroup.WithContext(watchCtx)
	for _, gvk := range kinds {
		group.Go(func() error {
			return s.tellChanges(watchCtx, gvk, sync.OnceFunc(func() { unread.Add(-1) }), func() {
				if unread.Load() > 0 {
					return
				}
				select {
				case changed <- struct{}{}:
				default:
				}
			})
		})
	}
	healthy, err := s.untilHealthy(watchCtx, changed)
	stop()
	watched := group.Wait()
	switch {
	case healthy:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return fmt.Errorf("watch Flux: %w", watched)
}

// tellChanges calls listed and then tell when the objects of one kind are known, and after each change. A kind that the cluster does not
// know has no objects.
func (s *System) tellChanges(ctx context.Context, gvk schema.GroupVersionKind, listed, tell func()) error {
	selection := kube.Selection{}
	if gvk == kube.DeploymentKind {
		selection.Namespace = Namespace
	}
	err := s.client.Watch(ctx, gvk, selection, func(kube.Objects) (bool, error) {
		listed()
		tell()
		return false, nil
	})
	if kube.IsAbsent(err) {
		listed()
		tell()
		return nil
	}
	return err
}

// untilHealthy reads the state of Flux after each change.
func (s *System) untilHealthy(ctx context.Context, changed <-chan struct{}) (healthy bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-changed:
		}
		select { // more events of the same change follow at once
		case <-ctx.Done():
			return false, nil
		case <-time.After(settle):
		}
		report, err := s.Status(ctx)
		if err != nil || report.Healthy() {
			return err == nil, err
		}
	}
}
