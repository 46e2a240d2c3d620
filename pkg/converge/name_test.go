package converge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// clusterOf is an API server that has a namespace kube-system with a UID.
func clusterOf(t *testing.T, uid string) *kube.Client {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "namespaces", "namespaced": false, "kind": ` +
			`"Namespace", "verbs": ["get"]}]}`,
		"/api/v1/namespaces/kube-system": `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "` + uid + `"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, there := answers[r.URL.Path]
		if !there {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	client, err := kube.New([]byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '"+server.URL+
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// heard keeps the warnings.
type heard struct {
	progress.Reporter
	warnings []string
}

func (h *heard) Warn(text string) { h.warnings = append(h.warnings, text) }

const (
	identity       = "providers/docker/v1/management.id"
	source, target = "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "0b4e28ba-2fa1-11d2-883f-0016d3cca427"
)

// naming is a clone of a fleet repo whose management cluster hands over.
type naming struct {
	server *gittest.HTTPS
	warned *heard
	pushed *following.Pushed
}

func newNaming(t *testing.T) *naming {
	t.Helper()
	t.Setenv("CI", "true") // nobody has told git a name
	n := &naming{server: gittest.NewHTTPS(t, gittest.Options{}), warned: &heard{Reporter: progress.Discard}}
	n.server.Seed(t, "main", map[string]string{
		"ca.pem": string(n.server.CA), "fleet.id": string(fleetrepo.IdentityContent("7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11")),
		"fleet.yaml": "{apiVersion: fleetctl.dev/v1alpha1, kind: Fleet, metadata: {name: acme}, spec: {git: {url: '" + n.server.URL +
			"', caFile: ca.pem}, managementClusters: [{name: mgmt, host: {type: embedded}, providers: [{name: docker, version: v1.14.2}]}]}}\n",
		identity: "{uid: " + source + ", at: 2026-11-26T10:00:00Z, by: ci}\n",
	})
	n.pushed = n.machine(t)
	return n
}

// machine is a machine that knows nothing but the fleet repo.
func (n *naming) machine(t *testing.T) *following.Pushed {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	auth := gitrepo.Auth{Username: n.server.Username, Token: n.server.Token, CA: n.server.CA}
	repo, err := gitrepo.Clone(t.Context(), n.server.URL, auth, "main", dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), management.Deps{
		Report: n.warned, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
		LookupEnv: func(string) (string, bool) { return "", false },
	}, session.Options{Dir: dir, Git: change.Credentials{Token: n.server.Token}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &following.Pushed{Session: s, Repo: repo, Revision: "before"}
}

func (n *naming) name(t *testing.T, from *following.Pushed, endpoint repoaccess.Endpoint) error {
	t.Helper()
	of := Naming{Name: "platform/platform", By: "fleetctl pivot"}
	return Name(t.Context(), clusterOf(t, target), from, &endpoint, of, func(string) {})
}

func isNothing(err error) bool {
	_, is := errors.AsType[steps.NothingToDo](err)
	return is
}

// The first commit of a run that goes on with a hand-over or a restore names nobody: the source has nothing left, or the target has nothing
// yet, and an abort would leave its name there.
func TestNobodyIsNamedBeforeTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		settle func(*Run)
		named  bool
	}{
		"init":                {settle: func(*Run) {}, named: true},
		"one that goes on":    {settle: func(r *Run) { r.GoesOn = true }},
		"one for a standby":   {settle: func(r *Run) { r.Session.StandbyOf = "other" }},
		"an activation of it": {settle: func(r *Run) { r.Session.StandbyOf, r.GoesOn = "other", true }},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNaming(t)
			s := n.pushed.Session
			s.Opts.FormerIsGone = true // else init refuses
			r := NewRun(s)
			c.settle(r)
			changes, err := r.identity(t.Context(), clusterOf(t, target), s.Opts.Dir)
			if err != nil || (len(changes) == 1) != c.named {
				t.Errorf("got %v, %v", changes, err)
			}
		})
	}
}

// A pivot that was killed between its commit and this step names the target when it is run again, from this machine and from another one,
// and once.
func TestName(t *testing.T) {
	n := newNaming(t)
	if err := n.name(t, n.machine(t), repoaccess.Endpoint{}); err != nil {
		t.Fatal(err)
	}
	if says := n.server.File(t, "main", identity); !strings.Contains(says, target) {
		t.Errorf("the fleet repo says %s", says)
	}
	head := n.server.Head(t, "main")
	for name, again := range map[string]*following.Pushed{"an old clone": n.pushed, "another machine": n.machine(t)} {
		if err := n.name(t, again, repoaccess.Endpoint{}); !isNothing(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n.server.Head(t, "main") != head || len(n.warned.warnings) > 0 {
		t.Errorf("again: %s, %q", n.server.Head(t, "main"), n.warned.warnings)
	}
}

// A remote that takes no push keeps nothing from going on, and what to commit by a pull request is said.
func TestNameOnAProtectedBranch(t *testing.T) {
	n := newNaming(t)
	n.server.Protect(t, "main")
	if err := n.name(t, n.pushed, repoaccess.Endpoint{}); !isNothing(err) {
		t.Fatal(err)
	}
	if n.pushed.Revision != "before" {
		t.Errorf("Flux is to apply %s, which the remote does not have", n.pushed.Revision)
	}
	if len(n.warned.warnings) != 1 || !strings.Contains(n.warned.warnings[0], identity+" has this one line: uid: "+target) ||
		!strings.Contains(n.warned.warnings[0], "platform/platform") {
		t.Fatalf("it warns %q", n.warned.warnings)
	}
	n.server.Seed(t, "main", map[string]string{identity: "uid: " + target + "\n"}) // somebody merges that
	if err := n.name(t, n.pushed, repoaccess.Endpoint{}); !isNothing(err) || len(n.warned.warnings) != 1 {
		t.Errorf("merged: %v, %q", err, n.warned.warnings)
	}
}

// Without a remote the folder of the fleet repo has the name.
func TestNameWithoutRemote(t *testing.T) {
	n := newNaming(t)
	if err := n.name(t, n.pushed, repoaccess.Endpoint{Local: true}); err != nil {
		t.Fatal(err)
	}
	files, err := n.pushed.Repo.Files(n.pushed.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := fleetrepo.ReadManagementID(files, n.pushed.Session.Layout()); err != nil || id.UID != target {
		t.Errorf("it says %+v, %v", id, err)
	}
}
