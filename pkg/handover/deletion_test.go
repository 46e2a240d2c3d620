package handover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// differentRecords returns Clusters of the management cluster with the UID u1, as their API servers say of their owner what their names
// tell, and their kubeconfigs.
func differentRecords(t *testing.T) (kubeconfigOf func(context.Context, kube.Key) ([]byte, error), clusters []capi.Cluster) {
	t.Helper()
	mine := capi.Owner{Fleet: "f", ManagementCluster: "first", UID: "u1", Epoch: 2}
	theirs := func(change func(*capi.Owner)) capi.Owner {
		o := capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}
		change(&o)
		return o
	}
	records := map[string]string{
		"restored": theirs(func(*capi.Owner) {}).String(),
		"taken":    theirs(func(o *capi.Owner) { o.Epoch = 3 }).String(),
		"namesake": theirs(func(o *capi.Owner) { o.ManagementCluster = "first" }).String(),
		"evil":     theirs(func(o *capi.Owner) { o.ManagementCluster = "\x1b[2J" + strings.Repeat("x", 10000) }).String(),
		"older":    theirs(func(o *capi.Owner) { o.Epoch = 1 }).String(),
		"mine":     mine.String(),
		"foreign":  theirs(func(o *capi.Owner) { o.Fleet = "g" }).String(),
		"detached": capi.Owner{Fleet: "f", Epoch: 3}.String(),
		"damaged":  "garbage",
	}
	kubeconfigs := map[string][]byte{"dead": kubeconfigTo("http://127.0.0.1:1")}
	clusters = []capi.Cluster{{Namespace: "n", Name: "dead", Owner: mine}, {Namespace: "n", Name: "none", Owner: mine}}
	for name, record := range records {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/api/v1":
				_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`+
					`{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["get"]}]}`)
			case "/api":
				_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case "/apis":
				_, _ = fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			default:
				_, _ = fmt.Fprintf(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"kube-system","name":"fleetctl-owner"},`+
					`"data":{"owner":%q}}`, record)
			}
		}))
		t.Cleanup(server.Close)
		kubeconfigs[name] = kubeconfigTo(server.URL)
		clusters = append(clusters, capi.Cluster{Namespace: "n", Name: name, Owner: mine})
	}
	return func(_ context.Context, key kube.Key) ([]byte, error) {
		if kubeconfig, has := kubeconfigs[key.Name]; has {
			return kubeconfig, nil
		}
		return nil, errors.New("it has none")
	}, clusters
}

// A Cluster is not deleted here if its own record names another management cluster of the fleet. Every other one can be deleted, also one
// that does not answer.
func TestDeletionOfAnothersClusterIsRefused(t *testing.T) {
	kubeconfigOf, clusters := differentRecords(t)
	got := heldByOthers(t.Context(), kubeconfigOf, clusters, Party{Name: "first", UID: "u1"}, "f")
	want := []string{
		"n/namesake is managed by another management cluster that is called first, too", "n/restored is managed by second",
		"n/taken is managed by second",
	}
	if len(got) != 4 || !slices.Equal(got[1:], want) {
		t.Errorf("got %q", got)
	}
	if len(got) > 0 && (clusterIn(got[0]) != "n/evil" || strings.Contains(got[0], "\x1b") || len(got[0]) > 200) {
		t.Errorf("got %q", got[0])
	}
}

// A paused Cluster is managed elsewhere if its own record names another management cluster of the fleet, and is not older than the
// Cluster here: two restores of one snapshot count the same number of hand-overs.
func TestManagedElsewhere(t *testing.T) {
	kubeconfigOf, clusters := differentRecords(t)
	if got := takenOver(t.Context(), kubeconfigOf, clusters, "u1", "f"); len(got) > 0 {
		t.Errorf("not paused: %v", got)
	}
	for i := range clusters {
		clusters[i].Paused = true
	}
	got := takenOver(t.Context(), kubeconfigOf, clusters, "u1", "f")
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"n/evil", "n/namesake", "n/restored", "n/taken"}) {
		t.Errorf("managed elsewhere: %q", names)
	}
	if got["n/restored"].UID != "u2" {
		t.Errorf("its owner: %+v", got["n/restored"])
	}
}
