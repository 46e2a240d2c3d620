package handover

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// workloadSays starts the API server of a workload cluster, whose record of its owner has this content. It returns the cluster as a
// snapshot of the first epoch has it.
func workloadSays(t *testing.T, record string, status int) []capi.Portable {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var body any
		switch r.URL.Path {
		case "/api":
			body = map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
		case "/apis":
			body = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}
		case "/api/v1":
			body = map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
				map[string]any{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": []string{"get"}},
			}}
		default:
			w.WriteHeader(status)
			body = map[string]any{
				"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"namespace": OwnerKey.Namespace, "name": OwnerKey.Name},
				"data": map[string]any{"owner": record},
			}
			if status != http.StatusOK {
				body = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": "Unauthorized"}
			}
		}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '" + server.URL +
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	object := func(text string) capi.Portable { return capi.Portable{Object: json.RawMessage(text)} }
	return []capi.Portable{
		object(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"shop","name":"shop","annotations":{` +
			`"fleetctl.dev/owner":"{\"epoch\":1}"}}}`),
		object(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"new","name":"new"}}`),
		object(fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"shop-kubeconfig"},"data":{"value":%q}}`,
			base64.StdEncoding.EncodeToString([]byte(kubeconfig)))),
	}
}

// A cluster that another fleet's management cluster has taken over has another owner, and so may have one whose record is damaged. A
// cluster that cannot be asked is named, and one without an API server is not asked.
func TestElsewhere(t *testing.T) {
	damaged := "cannot tell its owner, because its record of its owner is damaged: ConfigMap kube-system/fleetctl-owner"
	for name, test := range map[string]struct {
		record string
		status int
		says   string
		silent bool
	}{
		"the snapshot's own":     {record: `{"fleet":"f","managementCluster":"first","epoch":2}`},
		"as old as the snapshot": {record: `{"fleet":"f","managementCluster":"second","epoch":1}`},
		"another one's":          {record: `{"fleet":"f","managementCluster":"second","epoch":2}`, says: "is managed by second"},
		"a claim that the same restore, into another name, wrote before it was interrupted": {
			record: `{"fleet":"f","managementCluster":"second","uid":"u2","epoch":2}`,
		},
		"another fleet's": {
			record: `{"fleet":"0123456789","managementCluster":"first","epoch":2}`, says: "is managed by first of another fleet (01234567)",
		},
		"detached":                   {record: `{"fleet":"f","epoch":2}`, says: "was detached"},
		"detached from another":      {record: `{"fleet":"g","epoch":2}`, says: "was detached"},
		"detached, without a fleet":  {record: `{"fleet":"","managementCluster":"","uid":"","epoch":2}`, says: "was detached"},
		"no JSON":                    {record: `second`, says: damaged},
		"empty":                      {record: ``, says: damaged},
		"JSON that names no epoch":   {record: `{"managementCluster":"second"}`, says: damaged},
		"an epoch below 0":           {record: `{"managementCluster":"second","epoch":-1}`, says: damaged},
		"of another kind":            {record: `["second"]`, says: damaged},
		"the login is refused":       {status: http.StatusUnauthorized, silent: true},
		"no access to the ConfigMap": {status: http.StatusForbidden, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			if test.says != "" {
				want["shop/shop"] = test.says
			}
			status := test.status
			if status == 0 {
				status = http.StatusOK
			}
			got := Elsewhere(t.Context(), workloadSays(t, test.record, status), Party{Name: "first", UID: "u2"}, "f")
			if !maps.Equal(got.Others, want) || slices.Contains(got.Silent, "shop/shop") != test.silent || slices.Contains(got.Silent, "new/new") {
				t.Errorf("%+v; want %v", got, want)
			}
		})
	}
	objects := workloadSays(t, "", http.StatusOK)
	var secret struct {
		Data map[string][]byte `json:"data"`
	}
	if err := json.Unmarshal(objects[2].Object, &secret); err != nil {
		t.Fatal(err)
	}
	runs := strings.Replace(string(secret.Data["value"]), "contexts:",
		"users: [{name: a, user: {exec: {command: touch, args: [owned], apiVersion: client.authentication.k8s.io/v1}}}], contexts:", 1)
	objects[2].Object = json.RawMessage(strings.Replace(string(objects[2].Object), base64.StdEncoding.EncodeToString(secret.Data["value"]),
		base64.StdEncoding.EncodeToString([]byte(runs)), 1))
	got := Elsewhere(t.Context(), objects, Party{Name: "first"}, "f")
	if len(got.Others) > 0 || !slices.Equal(got.Silent, []string{"shop/shop"}) {
		t.Errorf("a kubeconfig that runs commands: %+v", got)
	}
}
