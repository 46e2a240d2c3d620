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
	// revivals bounds how often one run of init starts again what has ended under it.
	revivals = 3
	// lookPause lies between two looks at what init stands on: a step may wait for minutes on what ended long ago.
	lookPause = 2 * time.Second
)

// goneError says that something which init had started, or found running, ended while init worked.
type goneError struct {
	what string
	err  error // what the steps say about it; nil where a look found it
}

func (e *goneError) Error() string {
	if e.err == nil {
		return e.what + " has ended"
	}
	return fmt.Sprintf("%s has ended: %v", e.what, e.err)
}

func (e *goneError) Unwrap() error { return e.err }

// runWatched runs the steps of init, and ends them with a *goneError when the host or the server of the fleet repo ends meanwhile.
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

// watch looks, from when the host is whole, until something has ended or ctx does.
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

// stopped names what has ended of that which ran; "" if nothing. What cannot be looked at has not ended.
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

// ended names what a failure of the steps comes from, if it is that something has ended. The API server alone may have: its host starts it
// again, sooner or later.
func ended(ctx context.Context, r *converge.Run, err error) string {
	s := r.Session
	if _, whole := r.Pods.Peek(); !whole {
		if s.Host == nil {
			return ""
		}
		if st, lookErr := s.Host.State(ctx); lookErr != nil || st != host.StateStopped {
			return "" // it never was whole: what creates it knows more
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
