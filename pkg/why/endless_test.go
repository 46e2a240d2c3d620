package why

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// An API server that answers at once, and has no end of Clusters, is named when the time is over.
func TestEndlessClusters(t *testing.T) {
	answers := map[string]string{
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "groups": [{"name": "cluster.x-k8s.io", "versions": [{"groupVersion": "cluster.x-k8s.io/v1beta2",
			"version": "v1beta2"}], "preferredVersion": {"groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2"}}]}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
		"/apis/cluster.x-k8s.io/v1beta2": `{"kind": "APIResourceList", "groupVersion": "cluster.x-k8s.io/v1beta2", "resources": [
			{"name": "clusters", "kind": "Cluster", "namespaced": true, "verbs": ["get", "list"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok {
			_, _ = fmt.Fprint(w, answer)
			return
		}
		if !strings.HasSuffix(r.URL.Path, "/clusters") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"kind": "ClusterList", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {}, "items": [`)
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for {
			_, _ = fmt.Fprint(w, `{"kind": "Cluster", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": {"name": "a", "namespace": "x"}},`)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-pace.C:
			}
		}
	}))
	defer server.Close()
	client, err := kube.New([]byte("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "+
		"clusters: [{name: a, cluster: {server: '"+server.URL+"'}}], users: [{name: a, user: {}}]}"), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, collect := range map[string]func(ctx context.Context) error{
		"status": func(ctx context.Context) error {
			_, err := CollectDepth(ctx, Sources{Cluster: "demo", Client: client})
			return err
		},
		"why": func(ctx context.Context) error {
			_, err := Collect(ctx, Sources{Cluster: "demo", Client: client})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := collect(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "cluster demo on the API server "+client.Host()) || diag.Hint(err) == "" {
			t.Errorf("%s: %v with the hint %q", name, err, diag.Hint(err))
		}
	}
}
