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

	"github.com/fleetctl/fleetctl/pkg/await"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
)

// build lets kind make the cluster. At the same time it loads images as soon as the node takes them, and calls opts.Answers as soon as
// the API server is ready, which is after two thirds of kind's time.
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
		// If loading fails, kind goes on, and the next run loads the missing images.
		loadErr = h.loadEarly(groupCtx, created, opts)
		return nil
	})
	if opts.Answers != nil {
		group.Go(func() error {
			// Without this early call, buildCluster calls opts.Answers later.
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
	// Read the file that kind has just written, because asking the engine takes longer.
	kubeconfig, err := os.ReadFile(h.state.path(kubeconfigFile))
	if err != nil {
		return fmt.Errorf("read the kubeconfig of kind cluster %s: %w", h.name, err)
	}
	if err := waitReady(ctx, kubeconfig); err != nil {
		return err
	}
	answers(kubeconfig)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		h.prefer(groupCtx, detail)
		return nil
	})
	group.Go(func() error { return h.awaitServices(groupCtx) })
	if err := group.Wait(); err != nil {
		return err
	}
	return h.markComplete(ctx)
}

// awaitAnswer returns the kubeconfig when the API server is ready and its user is an administrator.
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

// runKind calls kind and returns when kind or ctx ends. kind takes no context, so after ctx's end it goes on in the background, until it
// ends itself or the process does. awaitCreation waits for its end.
func (h *Host) runKind(ctx context.Context, config *v1alpha4.Cluster, detail func(string)) error {
	done := make(chan struct{})
	h.mu.Lock()
	h.creating = done
	h.mu.Unlock()
	_, err := await.Call(ctx, func() (struct{}, error) {
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

// whileRunning drops kind's progress lines after ctx has ended.
func whileRunning(ctx context.Context, detail func(string)) func(string) {
	return func(message string) {
		if ctx.Err() == nil {
			detail(message)
		}
	}
}

// awaitCreation waits until an interrupted call of kind has ended.
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

// creationError writes the output of the failed command to a file, because it is too long for a message, and names the file in the hint.
func (h *Host) creationError(err error) error {
	hint := `run "fleetctl doctor" to see what this machine lacks`
	if run := exec.RunErrorForError(err); run != nil && len(run.Output) > 0 {
		if writeErr := h.state.writeFile(failureFile, run.Output); writeErr == nil {
			hint = fmt.Sprintf("the whole output is in %s; %s", h.state.path(failureFile), hint)
		}
	}
	return diag.Wrap("create kind cluster "+h.name, err, hint)
}
