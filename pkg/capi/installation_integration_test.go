//go:build integration

package capi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// slowCRD holds the requests that write the CRD with this name, and records which managers of providers are started in the meantime.
type slowCRD struct {
	http.RoundTripper
	name string
	hold time.Duration

	begun chan struct{} // closed when a manager is started too early
	mu    sync.Mutex
	early []string
	there bool
}

func (s *slowCRD) RoundTrip(r *http.Request) (*http.Response, error) {
	writes := r.Method == http.MethodPatch || r.Method == http.MethodPost
	switch {
	case writes && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/"+s.name):
		select {
		case <-s.begun:
		case <-time.After(s.hold):
		}
		response, err := s.RoundTripper.RoundTrip(r)
		s.mu.Lock()
		s.there = true
		s.mu.Unlock()
		return response, err
	case writes && strings.Contains(r.URL.Path, "/deployments/") && !strings.Contains(r.URL.Path, "/cert-manager/"):
		s.mu.Lock()
		if !s.there {
			s.early = append(s.early, r.URL.Path)
			if len(s.early) == 1 {
				close(s.begun)
			}
		}
		s.mu.Unlock()
	}
	return s.RoundTripper.RoundTrip(r)
}

// TestManagersStartAfterCRDs checks that managers start after the CRDs of other providers that they read. Without these CRDs a manager ends
// at once, and Kubernetes retries after longer and longer pauses.
func TestManagersStartAfterCRDs(t *testing.T) {
	for _, name := range []string{"machinedeployments.cluster.x-k8s.io", "bootstrapkubeadms.test.cluster.x-k8s.io"} {
		t.Run(name, func(t *testing.T) { managersStartAfter(t, name) })
	}
}

func managersStartAfter(t *testing.T, name string) {
	t.Helper()
	_, kubeconfig := kubetest.Start(t)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowCRD{name: name, hold: 5 * time.Second, begun: make(chan struct{})}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		slow.RoundTripper = rt
		return slow
	})
	c, err := kube.NewForConfig(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, source := managementOf(t, c, newRepository(t))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := m.Install(ctx, source, InstallOptions{Providers: resolve(t, source, allProviders)}); err != nil {
		t.Fatal(err)
	}
	if len(slow.early) > 0 {
		t.Errorf("before %s was there, it started %v", name, slow.early)
	}
	if !slow.there {
		t.Errorf("%s was never written", name)
	}
}
