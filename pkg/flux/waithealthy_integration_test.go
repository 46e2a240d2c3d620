//go:build integration

package flux

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// counter counts the lists of Kustomizations.
type counter struct {
	http.RoundTripper

	lists atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.Path == "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations" && r.URL.Query().Get("watch") == "" {
		c.lists.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// WaitHealthy returns once the last object is healthy, and asks the API server for nothing while nothing changes.
func TestWaitHealthy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, _ := kubetest.Start(t)
	installCRDs(ctx, t, c)
	counting := &counter{}
	config := c.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { counting.RoundTripper = next; return counting })
	counted, err := kube.NewForConfig(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	system := NewSystem(counted)
	failing := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": "failing"},
		"spec": map[string]any{
			"interval": "1h", "prune": true, "path": "./", "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"},
		},
	}}
	failing.SetGroupVersionKind(kustomizationKind)
	if err := c.Create(ctx, failing); err != nil {
		t.Fatal(err)
	}
	short, end := context.WithTimeoutCause(ctx, 5*time.Second, errors.New("the time is over"))
	defer end()
	if err := system.WaitHealthy(short); err == nil || err.Error() != "the time is over" {
		t.Errorf("with a Kustomization that is not Ready: %v", err)
	}
	if n := counting.lists.Load(); n > 2 { // that of the watch, and that of the state when it began
		t.Errorf("it listed the Kustomizations %d times in five seconds without a change", n)
	}
	done := make(chan error, 1)
	go func() { done <- system.WaitHealthy(ctx) }()
	err = c.Patch(ctx, failing, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("once it is suspended: %v", err)
	}
}
