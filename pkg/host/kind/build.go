package kind

import (
	"context"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
)

// build lets kind make the cluster. Beside it, the node is filled with images as soon as it takes some, and opts.Answers is
// called as soon as the API server is ready: a third of kind's time lies behind that moment.
func (h *Host) build(ctx context.Context, opts host.CreateOptions) error {
	image, err := h.nodeImage(ctx, opts)
	if err != nil {
		return err
	}
	if err := h.state.make(); err != nil {
		return err
	}
	if err := h.recordOurs(ctx); err != nil {
		return err
	}
	answers := func([]byte) {}
	if opts.Answers != nil {
		var once sync.Once
		answers = func(kubeconfig []byte) { once.Do(func() { opts.Answers(kubeconfig) }) }
	}
	var loadErr error
	created := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(created)
		return h.buildCluster(groupCtx, h.config(image, opts), opts.Detail, answers)
	})
	group.Go(func() error {
		// A failed load does not spoil the cluster: kind goes on, and the next run loads what is missing.
		loadErr = h.loadEarly(groupCtx, created, opts)
		return nil
	})
	if opts.Answers != nil {
		group.Go(func() error {
			// Only a head start: if it is missed, buildCluster says it later.
			if kubeconfig, err := h.awaitAnswer(groupCtx, created); err == nil {
				answers(kubeconfig)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return loadErr
}

// buildCluster makes the cluster, waits until it answers and its Services work, and marks it as complete.
func (h *Host) buildCluster(ctx context.Context, config *v1alpha4.Cluster, detail func(string), answers func([]byte)) error {
	if err := h.runKind(ctx, config, detail); err != nil {
		return err
	}
	// kind has just written it; asking the engine again would take longer than all of this.
	kubeconfig, err := os.ReadFile(h.state.path(kubeconfigFile))
	if err != nil {
		return fmt.Errorf("read the kubeconfig of kind cluster %s: %w", h.name, err)
	}
	if err := waitReady(ctx, kubeconfig); err != nil {
		return err
	}
	answers(kubeconfig)
	if err := h.awaitServices(ctx); err != nil {
		return err
	}
	return h.markComplete(ctx)
}

// awaitAnswer returns the kubeconfig once the API server is ready and takes its user for an administrator.
func (h *Host) awaitAnswer(ctx context.Context, created <-chan struct{}) ([]byte, error) {
	if err := h.awaitInNode(ctx, created, "[ -s /etc/kubernetes/admin.conf ]"); err != nil {
		return nil, err
	}
	kubeconfig, err := h.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	client, err := apiserver.New(kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := client.Wait(ctx); err != nil {
		return nil, err
	}
	return kubeconfig, client.WaitAdministrator(ctx)
}

// waitReady returns when the API server says that it is ready.
func waitReady(ctx context.Context, kubeconfig []byte) error {
	client, err := apiserver.New(kubeconfig)
	if err != nil {
		return err
	}
	return client.Wait(ctx)
}

// runKind calls kind and returns when it ends or the context does; then kind goes on behind our back until the process
// ends or awaitCreation has seen its end.
func (h *Host) runKind(ctx context.Context, config *v1alpha4.Cluster, detail func(string)) error {
	done := make(chan struct{})
	h.mu.Lock()
	h.creating = done
	h.mu.Unlock()
	_, err := await(ctx, func() (struct{}, error) {
		defer close(done)
		return struct{}{}, h.provider(whileRunning(ctx, detail)).Create(h.name,
			cluster.CreateWithV1Alpha4Config(config),
			cluster.CreateWithKubeconfigPath(h.state.path(kubeconfigFile)))
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return h.creationError(err)
}

// whileRunning silences what kind still says after its caller has gone.
func whileRunning(ctx context.Context, detail func(string)) func(string) {
	return func(message string) {
		if ctx.Err() == nil {
			detail(message)
		}
	}
}

// awaitCreation waits for the end of a call of kind that was interrupted earlier.
func (h *Host) awaitCreation(ctx context.Context) error {
	h.mu.Lock()
	creating := h.creating
	h.mu.Unlock()
	if creating == nil {
		return nil
	}
	select {
	case <-creating:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// creationError keeps what the failed command wrote, which is far too long for a message.
func (h *Host) creationError(err error) error {
	hint := `run "fleetctl doctor" to see what this machine lacks`
	if run := exec.RunErrorForError(err); run != nil && len(run.Output) > 0 {
		if writeErr := h.state.writeFile(failureFile, run.Output); writeErr == nil {
			hint = fmt.Sprintf("the whole output is in %s; %s", h.state.path(failureFile), hint)
		}
	}
	return diag.Wrap("create kind cluster "+h.name, err, hint)
}
