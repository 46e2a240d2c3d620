package lifecycle

import (
	"context"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/pivot"
)

// alreadyPivoted tells whether an earlier run has handed the work over. If so, it deletes the bootstrap cluster, if the
// earlier run could not. A pivot that was cut off after the target had taken over still has steps to do.
func (b *bootstrap) alreadyPivoted(ctx context.Context) (bool, error) {
	r, err := b.session.Cluster.Load()
	if err != nil || r.PivotedTo == "" {
		return false, nil //nolint:nilerr // without a record there was no pivot
	}
	unfinished, err := pivot.Unfinished(b.session.Cluster)
	if err == nil && unfinished {
		err = b.findHandover(ctx)
	}
	if err != nil {
		return true, err
	}
	if b.move.Under != nil {
		return false, nil
	}
	if b.opts.PivotTo != "" && !management.SameCluster(b.opts.PivotTo, r.PivotedTo) {
		return true, diag.Usage("leave --pivot-to out, or name that cluster",
			"the management cluster %s was pivoted to %s already", r.Name, r.PivotedTo)
	}
	b.result.PivotedTo = r.PivotedTo
	if b.session.HostErr != nil {
		return true, b.session.HostErr
	}
	st, err := b.session.Host.State(ctx)
	if err != nil {
		return true, err
	}
	if st != host.StateAbsent {
		if err := b.deleteBootstrap(ctx, nil); err != nil {
			return true, err
		}
	}
	return true, b.checkPivoted(ctx, &management.Target{Name: b.session.Mgmt.Name, Cluster: b.session.Cluster, Record: r})
}

// checkPivoted checks, at the cluster that took over, that everything is Ready. First it serves a fleet repo without a
// remote to that cluster again.
func (b *bootstrap) checkPivoted(ctx context.Context, t *management.Target) error {
	if _, err := t.ServeAgain(ctx, b.session.Deps); err != nil {
		return err
	}
	client, err := t.Client(ctx)
	if err != nil {
		return err
	}
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	if err := b.noteClusters(ctx, manager); err != nil {
		return err
	}
	if err := b.awaitFlux(ctx, flux.NewSystem(client)); err != nil {
		return err
	}
	if err := manager.WaitAvailable(ctx, nil, nil); err != nil {
		return err
	}
	return b.waitWorkloads(ctx, client, manager, nil)
}

// fluxTime bounds the wait for Flux after a pivot, whose last commit Flux may just be applying.
const fluxTime = 3 * time.Minute

// awaitFlux waits until Flux is healthy.
func (b *bootstrap) awaitFlux(ctx context.Context, system *flux.System) error {
	waiting, cancel := context.WithTimeout(ctx, fluxTime)
	defer cancel()
	err := system.WaitHealthy(waiting)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case waiting.Err() != nil && err != nil:
		return diag.NotReady("`fleetctl status` shows why", "Flux on %s is not healthy", b.result.PivotedTo)
	}
	return err
}
