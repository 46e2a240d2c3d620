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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
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

func newWorkload(namespace, name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: name,
		}},
	}
}

// takeWithCluster takes the cluster as a management cluster of the fleet, and makes a Cluster there.
func (e *existingCluster) takeWithCluster(ctx context.Context, t *testing.T) *session.Session {
	t.Helper()
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	e.makeCluster(ctx, t)
	return s
}

// withFlux is a management cluster of the fleet whose Flux follows its repo, with the kinds of Cluster API and no Cluster yet.
func (e *existingCluster) withFlux(ctx context.Context, t *testing.T) *management.Target {
	t.Helper()
	e.FollowSomething(ctx, t, e.Git.URL, "main", "providers/docker/v1/mgmt")
	e.takeWithCluster(ctx, t)
	if err := e.Client.WithWatch.Delete(ctx, newWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
	target, err := management.Find(e.Deps.Store, "", e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// standsUntouched fails unless the Cluster is as it was made.
func (e *existingCluster) standsUntouched(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	found := &clusterv1.Cluster{}
	if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: name}, found); err != nil || !found.DeletionTimestamp.IsZero() {
		t.Errorf("%s: %v, %v", name, found.DeletionTimestamp, err)
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
			target := e.withFlux(ctx, t)
			e.onSuspend(t, func() {
				if err := e.Client.Create(ctx, newWorkload("team-a", "late")); err != nil {
					t.Error(err)
				}
			})
			if err := act(ctx, e, target); err == nil || !strings.Contains(err.Error(), "team-a/late") {
				t.Errorf("got %v", err)
			}
			e.standsUntouched(ctx, t, "late")
		})
	}
}

// What has come to the bootstrap cluster since the others were moved lives only there: it is not deleted with it.
func TestBootstrapClusterIsKeptForWhatCameLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	s := e.takeWithCluster(ctx, t)
	b := &bootstrap{session: s, result: &BootstrapResult{}}
	if err := b.deleteBootstrap(ctx, nil); err == nil || !strings.Contains(err.Error(), "team-a/alpha") ||
		!strings.Contains(err.Error(), "since the others were moved") {
		t.Errorf("got %v", err)
	}
	e.standsUntouched(ctx, t, "alpha")
	if err := e.Client.WithWatch.Delete(ctx, newWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
	if err := b.checkHandedOver(ctx); err != nil {
		t.Errorf("with nothing left: %v", err)
	}
}

// The namespace of a cluster that is gone stays where somebody has put another one into it.
func TestNamespaceOfARemovedClusterIsKeptForAnother(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	e.withFlux(ctx, t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "alpha", Labels: map[string]string{flux.AppliedBy: "clusters-dev"}}}
	if err := e.Client.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.Create(ctx, newWorkload("alpha", "another")); err != nil {
		t.Fatal(err)
	}
	err := leaving.AwaitRemoval(ctx, e.Deps, leaving.RemovalOptions{
		Client: e.Client, Cluster: fleetrepo.Cluster{Name: "alpha"},
	})
	if err == nil || !strings.Contains(err.Error(), "the namespace alpha is kept") || !strings.Contains(err.Error(), "alpha/another") {
		t.Errorf("got %v", err)
	}
	there := &corev1.Namespace{}
	if err := e.Client.Get(ctx, kube.Key{Name: "alpha"}, there); err != nil || !there.DeletionTimestamp.IsZero() {
		t.Errorf("the namespace: %v, %v", there.DeletionTimestamp, err)
	}
}
