package pivot

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// A target with only a simulated API server is refused, with a message that says so.
func TestMayManage(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		says   string
	}{
		"a cluster":            {[]string{"apps", "apiextensions.k8s.io", "admissionregistration.k8s.io"}, ""},
		"an in-memory cluster": {[]string{"apps", "rbac.authorization.k8s.io"}, "admissionregistration.k8s.io and apiextensions.k8s.io"},
		"one without policies": {[]string{"apiextensions.k8s.io"}, "its API server does not have admissionregistration.k8s.io"},
		"no API server":        {nil, "whether small can be a management cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis" || c.groups == nil {
					http.NotFound(w, r)
					return
				}
				groups := []any{}
				for _, g := range c.groups {
					groups = append(groups, map[string]any{"name": g})
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
			}))
			defer listening.Close()
			client, err := kube.New([]byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '"+listening.URL+
				"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), kube.Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = mayManage(t.Context(), "small", client)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || diag.Hint(err) == "") {
				t.Errorf("got %v (%s)", err, diag.Hint(err))
			}
		})
	}
}

// A target that refuses the login can be reached: its kubeconfig has to be renewed, and that is what the hint says.
func TestRefusedLoginIsNoMatterOfReach(t *testing.T) {
	expired := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
	}))
	defer expired.Close()
	kubeconfig := []byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '" + expired.URL +
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}")
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, own := (&Move{to: "small", toKubeconfig: kubeconfig}).ownCluster(t.Context())
	for story, err := range map[string]error{
		"a dry run":                mayManage(t.Context(), "small", client),
		"whether it is our own":    own,
		"the first look of a move": answers(t.Context(), "small", client, ""),
	} {
		if err == nil || !strings.Contains(diag.Hint(err), "new kubeconfig of small") {
			t.Errorf("%s: %v (%s)", story, err, diag.Hint(err))
		}
	}
}
