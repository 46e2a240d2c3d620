package lifecycle

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

const (
	// startTime bounds the wait for a host that an earlier run has begun to start. A slow machine takes longer than a run does to come here.
	startTime = 2 * time.Minute
	// startPause is the time between two looks at it.
	startPause = 300 * time.Millisecond
)

// awaitStarting waits until a host that runs on this machine answers. A run that was killed leaves its host starting, and the next run asks
// it about a hand-over first. If the host does not answer in time, who asks it has the error.
func (b *bootstrap) awaitStarting(ctx context.Context) {
	if !b.session.Traits().Processes {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var step progress.Step
	for b.isStarting(ctx) {
		if step == nil {
			step = b.session.Deps.Report.Start("wait for the host that an earlier run has started")
		}
		select {
		case <-ctx.Done():
			step.Stop()
			return
		case <-time.After(startPause):
		}
	}
	if step != nil {
		step.Done()
	}
}

// isStarting tells whether the host runs and nobody listens yet.
func (b *bootstrap) isStarting(ctx context.Context) bool {
	if st, err := b.session.Host.State(ctx); err != nil || st != host.StateRunning {
		return false
	}
	client, err := management.Reach(ctx, b.session.Host)
	if err == nil {
		_, err = client.ServerVersion(ctx)
	}
	return kube.IsLost(err) || errors.Is(err, fs.ErrNotExist)
}
