//go:build integration

package lifecycle

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// onSuspend lets something happen at the very moment that Flux is suspended: after every list that was made before, and before any that is
// made after. The API server is reached by way of a server that does it before it passes the first such request on.
func (e *existingCluster) onSuspend(t *testing.T, do func()) {
	t.Helper()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: e.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: "admin"})
	config, err := loader.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/kustomizations/") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"suspend":true`)) {
				once.Do(do)
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL}
	through.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{}
	through.Contexts["admin"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "nobody"}
	if err := clientcmd.WriteToFile(*through, e.Kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// A Cluster that Flux makes while it is being suspended is seen: neither the host nor anything else is deleted.
func TestClusterThatComesWithTheSuspension(t *testing.T) {
	for name, act := range map[string]func(context.Context, *existingCluster, *management.Target) error{
		"host delete": func(ctx context.Context, _ *existingCluster, target *management.Target) error {
			_, err := management.DeleteHost(ctx, target, false)
			return err
		},
		"teardown": func(ctx context.Context, e *existingCluster, target *management.Target) error {
			_, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			e := newExistingCluster(t)
			target := e.WithFlux(ctx, t)
			e.onSuspend(t, func() {
				if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "late")); err != nil {
					t.Error(err)
				}
			})
			if err := act(ctx, e, target); err == nil || !strings.Contains(err.Error(), "team-a/late") {
				t.Errorf("got %v", err)
			}
			e.StandsUntouched(ctx, t, "late")
		})
	}
}

// What has come to the bootstrap cluster since the others were moved lives only there: it is not deleted with it.
func TestBootstrapClusterIsKeptForWhatCameLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	s := e.TakeWithCluster(ctx, t)
	b := &bootstrap{session: s, result: &BootstrapResult{}}
	if err := b.deleteBootstrap(ctx, nil); err == nil || !strings.Contains(err.Error(), "team-a/alpha") ||
		!strings.Contains(err.Error(), "since the others were moved") {
		t.Errorf("got %v", err)
	}
	e.StandsUntouched(ctx, t, "alpha")
	if err := e.Client.WithWatch.Delete(ctx, standingtest.NewWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
	if err := b.checkHandedOver(ctx); err != nil {
		t.Errorf("with nothing left: %v", err)
	}
}
