//go:build e2e

package handover

import (
	"context"
	"testing"
)

// newReleased returns a world in which the source has the Cluster early, with the release that makes it, and the target has the release.
func newReleased(ctx context.Context, t *testing.T) *world {
	t.Helper()
	w := newWorld(t, func(s *seeder) {
		s.file(ctx, t, "shared.yaml", "NAMESPACE", "early")
		s.file(ctx, t, "plain.yaml", "NAMESPACE", "early", "NAME", "early")
		release(ctx, t, s, "early")
		madeByFlux(ctx, t, clientOf(t, s.side))
	}, func(s *seeder) { release(ctx, t, s, "early") })
	observing(t, clientOf(t, w.target))
	return w
}

// followed returns a fleet repo that declares both sides, which both follow, on a machine that knows both.
func (w *world) followed(ctx context.Context, t *testing.T) *twoInOne {
	t.Helper()
	f := newTwoInOne(t)
	for _, s := range []*side{w.source, w.target} {
		follow(ctx, t, newSeeder(s), f.server.URL)
	}
	know(t, f.deps(), "root", f.Dir, w.source, w.sourceProxy.kubeconfig)
	know(t, f.deps(), "eu", f.Dir, w.target, w.targetProxy.kubeconfig)
	return f
}

// known is followed for a command in this process, whose requests no proxy counts.
func (w *world) known(ctx context.Context, t *testing.T) *twoInOne {
	t.Helper()
	w.sourceProxy.run.Store(&run{})
	w.targetProxy.run.Store(&run{})
	return w.followed(ctx, t)
}
