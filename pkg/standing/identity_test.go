package standing_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// serverOf is an API server that has a namespace kube-system with a UID and, if it is given, the journal of a hand-over.
func serverOf(t *testing.T, uid string, journal *handover.Journal) *kube.Client {
	t.Helper()
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var body any
		switch r.URL.Path {
		case "/api":
			body = map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
		case "/apis":
			body = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}
		case "/api/v1":
			body = map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
				map[string]any{"name": "namespaces", "namespaced": false, "kind": "Namespace", "verbs": []string{"get"}},
				map[string]any{"name": "secrets", "namespaced": true, "kind": "Secret", "verbs": []string{"get"}},
			}}
		case "/api/v1/namespaces/kube-system":
			body = map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": uid}}
		case "/api/v1/namespaces/" + handover.JournalKey.Namespace + "/secrets/" + handover.JournalKey.Name:
			if journal == nil {
				w.WriteHeader(http.StatusNotFound)
				body = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
				break
			}
			content, err := json.Marshal(journal)
			if err != nil {
				t.Error(err)
			}
			body = map[string]any{
				"kind": "Secret", "apiVersion": "v1", "data": map[string]any{"journal": content},
				"metadata": map[string]any{"namespace": handover.JournalKey.Namespace, "name": handover.JournalKey.Name},
			}
		default:
			w.WriteHeader(http.StatusNotFound)
			body = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(listening.Close)
	client, err := kube.New([]byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '"+listening.URL+
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sessionHere is a session with a management cluster that this machine may make.
func sessionHere(t *testing.T) *session.Session {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"fleet.id": string(fleetrepo.IdentityContent("7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11")),
		"fleet.yaml": "{apiVersion: fleetctl.dev/v1alpha1, kind: Fleet, metadata: {name: acme}, spec: {managementClusters: [{name: mgmt, host: " +
			"{type: embedded}, providers: [{name: docker, version: v1.14.2}]}]}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := session.Open(t.Context(), management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
		LookupEnv: func(string) (string, bool) { return "", false },
	}, session.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// The fleet repo names one cluster as the management cluster. Another one takes its place only where something tells that the named one
// does not act any more; otherwise it is refused before a Flux of it follows the repo.
func TestIdentity(t *testing.T) {
	const uid, other = "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "0b4e28ba-2fa1-11d2-883f-0016d3cca427"
	target := handover.Journal{FormatVersion: "1", ID: "one", Role: handover.RoleTarget, Phase: handover.PhaseReleased}
	target.Source.UID = other
	earlier := target
	earlier.Source.UID = "a-1"
	around := target
	around.Around, around.Source.UID = true, uid // another tool restored the objects: nothing tells whose they were
	transferred := target
	transferred.Select = []string{"prod/shop"}
	before := target
	before.Phase = handover.PhaseCopied
	restored, fenced := before, before
	restored.Snapshot, fenced.Around = "20260101T000000Z-abcdef", true
	for name, c := range map[string]struct {
		named, ended string // by the fleet repo
		settle       func(*session.Session)
		journal      *handover.Journal
		goesOn       bool
		nothing      bool // there is nothing to note
		refused      bool
		restores     bool // a restore into it is under way, of which status says more
	}{
		"nobody is named":                                    {},
		"this one is named":                                  {named: uid, nothing: true},
		"another one is named":                               {named: other, refused: true},
		"another one, which has ended":                       {named: other, ended: other},
		"another one, and an earlier one has ended":          {named: other, ended: "a-1", refused: true},
		"another one, which somebody says is gone":           {named: other, settle: func(s *session.Session) { s.Opts.FormerIsGone = true }},
		"another one, which a restore takes over":            {named: other, goesOn: true},
		"another one, which handed over to this one":         {named: other, journal: &target},
		"another one, after a third one handed over to this": {named: other, journal: &earlier, refused: true},
		"another one, whose objects another tool restored":   {named: other, journal: &around},
		"another one, which handed one cluster over":         {named: other, journal: &transferred, refused: true},
		"another one, which is about to hand over":           {named: other, journal: &before, refused: true},
		"another one, whose snapshot is being restored":      {named: other, journal: &restored, refused: true, restores: true},
		"another one, while another tool restores":           {named: other, journal: &fenced, refused: true, restores: true},
		"another one that this machine has made": {named: other, settle: func(s *session.Session) {
			if err := s.Cluster.NoteMade(s.Identity(), other); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := sessionHere(t), serverOf(t, uid, c.journal)
			if c.settle != nil {
				c.settle(s)
			}
			root := t.TempDir()
			for file, content := range map[string]string{s.Layout().Identity(): c.named, s.Layout().Ended("mgmt"): c.ended} {
				if content == "" {
					continue
				}
				content = "{uid: " + content + ", at: 2026-11-26T10:00:00Z, by: ci on other}\n"
				if file == s.Layout().Ended("mgmt") {
					content = "ended: " + content
				}
				file = filepath.Join(root, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			files, err := within.FS(root)
			if err != nil {
				t.Fatal(err)
			}
			place := standing.Place{Cluster: s.Cluster, Fleet: s.Identity(), Name: "mgmt", Layout: s.Layout(), Repo: files}
			// status does not know that somebody has said that the other one is gone.
			stands := (c.refused || c.goesOn || s.Opts.FormerIsGone) && !c.restores
			if in, err := place.Other(t.Context(), client); err != nil || (in != nil) != stands || stands && in.UID != other {
				t.Errorf("the place has %+v, %v; want another one: %t", in, err, stands)
			}
			changes, err := standing.Identity(t.Context(), s, client, root, c.goesOn)
			if c.refused {
				if err == nil || changes != nil || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), "ci on other") ||
					!strings.Contains(diag.Hint(err), "`fleetctl restore --source-is-gone`") ||
					!strings.Contains(diag.Hint(err), "`fleetctl init --source-is-gone`") || s.Cluster.HasMade(s.Identity(), uid) {
					t.Errorf("got %v, %v (%s)", changes, err, diag.Hint(err))
				}
				return
			}
			if err != nil || (changes == nil) != c.nothing {
				t.Fatalf("got %v, %v", changes, err)
			}
			if !s.Cluster.HasMade(s.Identity(), uid) {
				t.Error("this machine does not say that it has made it")
			}
			if changes == nil {
				return
			}
			file := changes[0]
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file.Path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, file.Path), file.Content, 0o600); err != nil {
				t.Fatal(err)
			}
			files, err = within.FS(root)
			if err != nil {
				t.Fatal(err)
			}
			if id, err := fleetrepo.ReadManagementID(files, s.Layout()); err != nil || id.UID != uid || id.By == "" {
				t.Errorf("it says %+v, %v", id, err)
			}
			if changes, err := standing.Identity(t.Context(), s, client, root, false); err != nil || changes != nil {
				t.Errorf("again: %v, %v", changes, err)
			}
		})
	}
}
