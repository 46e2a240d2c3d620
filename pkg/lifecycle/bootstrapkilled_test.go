package lifecycle

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// A bootstrap that was killed after the target has taken over, and before the credentials are off it, goes on with that: it is not at its
// end because this machine knows where the work is.
func TestBootstrapGoesOnAfterTheHandover(t *testing.T) {
	const target = "platform/platform"
	kubeconfig := newTarget(t, handover.Journal{
		FormatVersion: "1", Role: handover.RoleTarget, Phase: handover.PhaseReleased, Fleet: identity,
		Source: handover.Party{Name: "mgmt"}, Target: handover.Party{Name: target},
	})
	b, _ := newRunner(t, nil, "")
	b.opts.PivotTo = "platform"
	record := b.session.Record()
	record.PivotedTo = target
	if err := b.session.Cluster.Save(record); err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(map[string]any{"name": target, "kubeconfig": []byte(kubeconfig)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.session.Cluster.Write("handover-target.json", kept); err != nil {
		t.Fatal(err)
	}
	if pivoted, err := b.alreadyPivoted(t.Context()); pivoted || err != nil {
		t.Errorf("it is at its end: %v, %v", pivoted, err)
	}
	if b.move.Under == nil || !b.move.Gone {
		t.Errorf("it does not go on: %+v", b.move)
	}
}

// startingHost is a host whose API server comes up while it is asked.
type startingHost struct {
	host.Host
	answers []func() ([]byte, error)
}

func (h *startingHost) State(context.Context) (host.State, error) { return host.StateRunning, nil }

func (h *startingHost) Kubeconfig(context.Context) ([]byte, error) {
	answer := h.answers[0]
	if len(h.answers) > 1 {
		h.answers = h.answers[1:]
	}
	return answer()
}

// A run right after one that was killed meets a host that is still starting: first it has no kubeconfig yet, then nobody listens.
func TestBootstrapAwaitsAStartingHost(t *testing.T) {
	answers := newTarget(t, handover.Journal{
		FormatVersion: "1", Role: handover.RoleSource, Phase: handover.PhaseFenced, Fleet: identity,
		Source: handover.Party{Name: "mgmt"}, Target: handover.Party{Name: "platform/platform"},
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := kubeconfigOf("http://" + listener.Addr().String())
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ := newRunner(t, nil, "")
	b.opts.PivotTo = "platform"
	b.session.Host = &startingHost{Host: b.session.Host, answers: []func() ([]byte, error){
		func() ([]byte, error) { return nil, &fs.PathError{Op: "open", Path: "kubeconfig", Err: fs.ErrNotExist} },
		func() ([]byte, error) { return []byte(silent), nil },
		func() ([]byte, error) { return []byte(answers), nil },
	}}
	if err := b.findHandover(t.Context()); err != nil || b.move.Under == nil {
		t.Errorf("got %v, %+v", err, b.move.Under)
	}
}

// The source is deleted last, so that a run that goes on finds it.
func TestBootstrapDeletesTheSourceLast(t *testing.T) {
	b, _ := newRunner(t, nil, "")
	b.opts.PivotTo = "platform"
	all := b.steps()
	needs := map[string][]string{}
	for _, step := range all {
		needs[step.Name] = step.Needs
	}
	before := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		for _, need := range needs[name] {
			before[need] = true
			follow(need)
		}
	}
	follow(stepTeardown)
	for _, step := range all {
		if step.Name != stepTeardown && !before[step.Name] && !strings.HasPrefix(step.Name, stepSnapshots) {
			t.Errorf("it does not wait for %q", step.Name)
		}
	}
	if !slices.ContainsFunc(all, func(s steps.Step) bool { return s.Name == stepTeardown }) {
		t.Error("it deletes nothing")
	}
}

// newTarget is the API server of a cluster whose journal says that, and returns its kubeconfig.
func newTarget(t *testing.T, journal handover.Journal) string {
	t.Helper()
	content, err := json.Marshal(journal)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var body any
		switch {
		case r.URL.Path == "/version":
			body = map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
		case r.URL.Path == "/api":
			body = map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
		case r.URL.Path == "/apis":
			body = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}
		case r.URL.Path == "/api/v1":
			body = map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
				map[string]any{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": []string{"get"}},
				map[string]any{"name": "secrets", "namespaced": true, "kind": "Secret", "verbs": []string{"get"}},
			}}
		case strings.HasSuffix(r.URL.Path, "/secrets/"+handover.JournalKey.Name):
			body = map[string]any{
				"kind": "Secret", "apiVersion": "v1",
				"metadata": map[string]any{"namespace": handover.JournalKey.Namespace, "name": handover.JournalKey.Name},
				"data":     map[string]any{"journal": content},
			}
		default:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(server.URL)
}

func kubeconfigOf(server string) string {
	return "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '" + server +
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
}
