package management

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// status says that the record of a management cluster's fleet is damaged: other commands refuse to work with it for that.
func TestStatusTellsOfADamagedClaim(t *testing.T) {
	for story, c := range map[string]struct {
		record map[string]any
		tells  bool
	}{
		"damaged": {map[string]any{"fleet": "\u0000"}, true},
		"empty":   {map[string]any{}, true},
		"whole":   {map[string]any{"fleet": "11111111-2222-4333-8444-555555555555", "managementCluster": "eu"}, false},
		"none":    {nil, false},
	} {
		t.Run(story, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				var body any
				switch r.URL.Path {
				case "/readyz":
					return
				case "/api":
					body = map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
				case "/apis":
					body = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}
				case "/api/v1":
					body = map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
						map[string]any{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": []string{"get"}},
					}}
				case "/api/v1/namespaces/fleetctl-system/configmaps/fleet":
					body = map[string]any{
						"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"namespace": "fleetctl-system", "name": "fleet"},
						"data": c.record,
					}
				}
				if body == nil || strings.HasSuffix(r.URL.Path, "/fleet") && c.record == nil {
					w.WriteHeader(http.StatusNotFound)
					body = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
				}
				if err := json.NewEncoder(w).Encode(body); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(server.Close)
			store := state.Store{Dir: t.TempDir()}
			cluster := store.Cluster("eu")
			if err := cluster.Save(state.Record{
				FleetID: "11111111-2222-4333-8444-555555555555", HostType: "existing", Connected: true, KubeconfigSource: cluster.Path("way"),
				Context: "eu",
			}); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cluster.Path("way"), wayTo("eu", server.URL), 0o600); err != nil {
				t.Fatal(err)
			}
			target, err := Find(store, "eu", "")
			if err != nil {
				t.Fatal(err)
			}
			from := StatusSources(t.Context(), target)
			if from.Unreachable != nil {
				t.Fatal(from.Unreachable)
			}
			report := status.Collect(t.Context(), from)
			tells := slices.ContainsFunc(report.Problems, func(p status.Problem) bool {
				return strings.Contains(p.Reason, "ConfigMap fleetctl-system/fleet") && strings.Contains(p.Hint, "`fleetctl init`")
			})
			if tells != c.tells {
				t.Errorf("told: %t, of %+v", tells, report.Problems)
			}
		})
	}
}
