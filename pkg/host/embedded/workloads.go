package embedded

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/runner"
)

// workloads are the Deployments that run as processes. The API server needs a resolver of Services when it starts, and Deployments need
// the API server. So until Run, Resolve finds nothing.
type workloads struct {
	supervisor *supervisor
	network    privatenet.Loopback

	mu     sync.Mutex
	runner *runner.Runner
}

func newWorkloads(s *supervisor, network privatenet.Loopback) *workloads {
	return &workloads{supervisor: s, network: network}
}

// Resolve implements egress.Resolver.
func (w *workloads) Resolve(ctx context.Context, host, port string) (string, error) {
	w.mu.Lock()
	r := w.runner
	w.mu.Unlock()
	if r == nil {
		return "", errors.New("the host is starting: no program runs yet")
	}
	return r.Resolve(ctx, host, port)
}

// Run calls ready, and then runs Deployments until ctx ends. It returns when their processes have ended.
func (w *workloads) Run(ctx context.Context, config *rest.Config, ready func() error) error {
	r, err := runner.New(config, w.supervisor.store, runner.Options{
		Dir: w.supervisor.dir.path(runnerDir), Records: w.supervisor.dir.path(processesDir),
		Network: w.network,
		HelpDir: filepath.Join(w.supervisor.config.ImageDir, "help"),
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.runner = r
	w.mu.Unlock()
	if err := ready(); err != nil {
		return err
	}
	return r.Run(ctx)
}
