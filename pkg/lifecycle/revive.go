package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	// revivals bounds how often one run of init starts the host or the server again.
	revivals = 3
	// lookPause is the time between two looks at the host and the server. A step may wait minutes for one that ended long ago.
	lookPause = 2 * time.Second
)

// goneError says that the host, or the server of the fleet repo, ended while init worked.
type goneError struct {
	what string
	err  error // the error of the steps; nil if watch noticed the end
}

func (e *goneError) Error() string {
	if e.err == nil {
		return e.what + " has ended"
	}
	return fmt.Sprintf("%s has ended: %v", e.what, e.err)
}

func (e *goneError) Unwrap() error { return e.err }

// runWatched runs the steps of init. If the host or the server of the fleet repo ends meanwhile, it stops the steps with a *goneError.
func runWatched(ctx context.Context, r *converge.Run) error {
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if gone := watch(watched, r); gone != nil {
			cancel(gone)
		}
	}()
	err := steps.Run(watched, r.Session.Deps.Report, r.WantedSteps())
	cancel(nil)
	<-done
	if err == nil || ctx.Err() != nil {
		return err
	}
	if gone, ok := context.Cause(watched).(*goneError); ok { //nolint:errorlint // set above, never wrapped
		return gone
	}
	if what := ended(ctx, r, err); what != "" {
		return &goneError{what: what, err: err}
	}
	return err
}

// watch checks the host and the server until one of them has ended or ctx ends. It begins when the host is complete.
func watch(ctx context.Context, r *converge.Run) *goneError {
	if _, err := r.Pods.Await(ctx); err != nil {
		return nil
	}
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if what := stopped(ctx, r); what != "" && ctx.Err() == nil {
			return &goneError{what: what}
		}
	}
}

// stopped names the host or the server if it ran and has ended, and returns "" if neither has. If a state cannot be read, it counts as
// running.
func stopped(ctx context.Context, r *converge.Run) string {
	s := r.Session
	if st, err := s.Host.State(ctx); err == nil && (st == host.StateStopped || st == host.StateBroken) {
		return "management cluster " + s.Mgmt.Name
	}
	if endpoint, made := r.Endpoint.Peek(); !made || !endpoint.Local {
		return ""
	}
	if st, err := gitserve.Status(ctx, s.Cluster.Path(management.GitServeDir)); err == nil && !st.Running {
		return "the server of the fleet repo"
	}
	return ""
}

// ended names the host or the server if its end made the steps fail. It does not if only the API server has ended, because the host starts
// the API server again.
func ended(ctx context.Context, r *converge.Run, err error) string {
	s := r.Session
	if _, whole := r.Pods.Peek(); !whole {
		if s.Host == nil {
			return ""
		}
		if st, lookErr := s.Host.State(ctx); lookErr != nil || st != host.StateStopped {
			return "" // if it was never complete, the step that creates it knows more
		}
	}
	if what := stopped(ctx, r); what != "" {
		return what
	}
	if client, made := r.Client.Peek(); made && client.Lost(err) {
		return "the API server of management cluster " + s.Mgmt.Name
	}
	return ""
}
