package lifecycle

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/checkup"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/state"
)

const identity = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"

// newRunner is a bootstrap on a machine that knows nothing but the fleet repo and its keys, and the place of its snapshots.
func newRunner(t *testing.T, keys secret.Keys, snapshots string) (*bootstrap, snapshot.Place) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		v1alpha1.FileName: "{apiVersion: fleetctl.dev/v1alpha1, kind: Fleet, metadata: {name: acme}, spec: {" + snapshots +
			"managementClusters: [{name: mgmt, host: {type: embedded}, providers: [{name: docker, version: v1.14.2}]}]}}\n",
		fleetrepo.IdentityFile: string(fleetrepo.IdentityContent(identity)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deps := management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
		LookupEnv: func(name string) (string, bool) {
			if name != "SOPS_AGE_KEY" || len(keys) == 0 {
				return "", false
			}
			return string(keys.File()), true
		},
	}
	s, err := session.Open(t.Context(), deps, session.Options{Dir: dir, Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if snapshots == "" {
		return newBootstrap(s, BootstrapOptions{}), nil
	}
	place, err := s.Place()
	if err != nil {
		t.Fatal(err)
	}
	return newBootstrap(s, BootstrapOptions{}), place
}

// workload is the API server of a workload cluster, which says who manages it.
func workload(t *testing.T, owner capi.Owner) (objects []capi.Portable) {
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
			body = map[string]any{
				"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"namespace": "kube-system", "name": "fleetctl-owner"},
				"data": map[string]any{"owner": owner.String()},
			}
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(server.Close)
	kubeconfig := "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '" + server.URL +
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	for _, object := range []map[string]any{
		{"kind": "Cluster", "apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": map[string]any{"namespace": "shop", "name": "shop"}},
		{
			"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"namespace": "shop", "name": "shop-kubeconfig"},
			"data": map[string]any{"value": []byte(kubeconfig)},
		},
	} {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, capi.Portable{Object: content})
	}
	return objects
}

// writeIn writes a file with something in it into a folder.
func writeIn(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkOf makes one of doctor's checks, and returns what it finds wrong.
func checkOf(t *testing.T, s *session.Session, name string) error {
	t.Helper()
	for _, check := range checkup.ForDoctor(s) {
		if check.Name != name {
			continue
		}
		if found := check.Run(t.Context()); found.Status == preflight.StatusFail {
			return diag.Errorf(found.Hint, "%s", found.Summary)
		}
		return nil
	}
	t.Fatalf("there is no check %q", name)
	return nil
}

// Where only the fleet repo tells of an earlier run, bootstrap and init make nothing beside what may live. They say what they looked for,
// and which flag decides.
func TestBootstrapOfARepoThatHadOne(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	const declared = "snapshots: {to: snapshots}, "
	for name, c := range map[string]struct {
		place          string
		before, gone   bool
		known, mounted bool
		endedHere      bool   // a note on this machine says that it has ended the management cluster
		endedInGit     string // a note in the fleet repo, which says that
		named, made    string // the management cluster that the fleet repo names, and the one that this machine has made
		says, hints    string // of the error
	}{
		"a new repo":                     {},
		"a new repo with an empty place": {place: declared, mounted: true},
		"a new repo without its place":   {place: declared},
		"it had one":                     {before: true, says: "fleet.yaml declares no place of snapshots"},
		"it had one, and the place is not there": {
			place: declared, before: true, says: "there is no snapshot of it in", hints: "not mounted",
		},
		"it had one, and the place is empty": {
			place: declared, before: true, mounted: true, says: "there is no snapshot of it in", hints: "not mounted",
		},
		"it had one that this machine made":      {place: declared, before: true, known: true},
		"it had one that is gone":                {place: declared, before: true, gone: true},
		"it had one that this machine has ended": {before: true, endedHere: true},
		"it had one that this machine has ended, and made again, and forgotten": {
			before: true, endedHere: true, known: true, says: "fleet.yaml declares no place of snapshots",
		},
		"it had one that has ended, as Git says":              {place: declared, before: true, endedInGit: "ended: {}"},
		"it had this machine's, which this machine has ended": {before: true, endedHere: true, named: "a-1", made: "a-1"},
		"it had this machine's, whose host is gone":           {before: true, known: true, named: "a-1", made: "a-1"},
		"another machine has made it since this one has ended its": {
			before: true, endedHere: true, named: "b-2", made: "a-1",
			says: "mgmt was made 2026-11-26T10:00:00Z, ci on other), this machine knows only",
		},
		"another machine has made it since this one knew its": {
			before: true, known: true, named: "b-2", made: "a-1", says: "this machine knows only another one of this name",
		},
		"another machine has made it, and this one ended its with an older fleetctl": {
			before: true, endedHere: true, named: "b-2", says: "this machine knows only another one of this name",
		},
		"another machine has made it, and it is gone":  {before: true, endedHere: true, named: "b-2", made: "a-1", gone: true},
		"it had one that has ended, as Git says of it": {before: true, named: "b-2", endedInGit: "ended: {uid: b-2}"},
		"it had one that has ended, as Git says of an earlier one": {
			before: true, named: "b-2", endedInGit: "ended: {uid: a-1}", says: "this machine has no host and no record of it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, place := newRunner(t, nil, c.place)
			b.opts.SourceIsGone, b.session.Opts.FormerIsGone = c.gone, c.gone
			if err := b.session.Cluster.NoteMade(identity, c.made); err != nil {
				t.Fatal(err)
			}
			if c.mounted {
				if err := os.MkdirAll(place.String(), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if c.endedHere {
				if err := b.session.Cluster.NoteEnded(identity); err != nil {
					t.Fatal(err)
				}
			}
			if c.known {
				if err := b.session.Cluster.Save(state.Record{Name: "mgmt", FleetID: identity, HostType: "embedded"}); err != nil {
					t.Fatal(err)
				}
			}
			if c.known && c.endedHere { // as connect --forget does
				if err := b.session.Cluster.Remove(); err != nil {
					t.Fatal(err)
				}
			}
			at := b.session.Layout()
			if c.before {
				writeIn(t, b.session.Opts.Dir, at.SyncFile(), "{}")
			}
			if c.endedInGit != "" {
				writeIn(t, b.session.Opts.Dir, at.Ended("mgmt"), c.endedInGit)
			}
			if c.named != "" {
				writeIn(t, b.session.Opts.Dir, at.Identity(), "{uid: "+c.named+", at: 2026-11-26T10:00:00Z, by: ci on other}")
			}
			for command, run := range map[string]func() error{
				"bootstrap": func() error { return b.fromSnapshot(t.Context()) },
				"init":      func() error { return standing.Refuse(t.Context(), b.session) },
				"a dry run": func() error { return whatInitRefuses(t.Context(), b.session) },
				"doctor":    func() error { return checkOf(t, b.session, checkup.Fleet) },
			} {
				err := run()
				if b.restore != nil {
					t.Errorf("%s restores something", command)
				}
				if c.says == "" {
					if err != nil {
						t.Errorf("%s: got %v", command, err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("%s: got %v, want %q", command, err, c.says)
				}
				for _, want := range []string{"--source-is-gone", "fleetctl connect", c.hints} {
					if !strings.Contains(diag.Hint(err), want) {
						t.Errorf("%s: the hint %q lacks %q", command, diag.Hint(err), want)
					}
				}
			}
		})
	}
}

// All that a bootstrap may find on a machine that knows nothing: what it begins from, or why it makes nothing.
func TestBootstrapOnANewRunner(t *testing.T) {
	const declared = "snapshots: {to: snapshots}, "
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	mine := secret.Keys{key}
	good := func() *snapshot.Snapshot {
		return &snapshot.Snapshot{
			FormatVersion: "1", ID: snapshot.NewID(time.Now()), Taken: time.Now(), By: "runner-1", Fleet: identity, FleetName: "acme",
			ManagementCluster: "mgmt", UID: "lost", Clusters: []string{"shop/shop"}, Available: []string{}, Providers: []string{},
			Counts: map[string]int{"Cluster": 1},
		}
	}
	owned := func(by string, epoch int64) func(*testing.T, *snapshot.Snapshot) {
		return func(t *testing.T, s *snapshot.Snapshot) {
			t.Helper()
			s.Objects = workload(t, capi.Owner{Fleet: identity, ManagementCluster: by, Epoch: epoch})
		}
	}
	for name, c := range map[string]struct {
		place    string
		gone     bool
		keys     secret.Keys
		snapshot func(*testing.T, *snapshot.Snapshot) // changes a good one; nil: there is none
		spoil    func(*testing.T, string)             // changes the folder of the snapshots
		says     []string                             // of the error; none: it begins
		restores bool                                 // begins from the snapshot
	}{
		"no place is declared":    {keys: mine},
		"nothing in the place":    {place: declared, keys: mine},
		"nothing, and it is gone": {place: declared, gone: true, keys: mine},
		"nobody says that it is gone": {
			place: declared, keys: mine, snapshot: func(*testing.T, *snapshot.Snapshot) {},
			says: []string{
				"mgmt of the snapshot", "by runner-1", "is gone", "its host on this machine is absent", "--source-is-gone",
			},
		},
		"it is gone": {place: declared, gone: true, keys: mine, snapshot: func(*testing.T, *snapshot.Snapshot) {}, restores: true},
		"it was handed over": {
			place: declared, gone: true, keys: mine, snapshot: func(_ *testing.T, s *snapshot.Snapshot) { s.HandedOver = "second" },
			says: []string{"second", "mgmt"},
		},
		"another fleet's": {
			place: declared, gone: true, keys: mine,
			snapshot: func(_ *testing.T, s *snapshot.Snapshot) { s.Fleet, s.FleetName = "0"+identity[1:], "theirs" },
			says:     []string{"of fleet theirs", "in the repo of that fleet"},
		},
		"another management cluster's": {
			place: declared, gone: true, keys: mine, snapshot: func(_ *testing.T, s *snapshot.Snapshot) { s.ManagementCluster = "third" },
			says: []string{"of management cluster third", "--management"},
		},
		"no key here": {
			place: declared, gone: true, snapshot: func(*testing.T, *snapshot.Snapshot) {},
			says: []string{secret.ErrNoKey.Error(), "--age-key-file"},
		},
		"a strange key here": {
			place: declared, gone: true, keys: secret.Keys{other}, snapshot: func(*testing.T, *snapshot.Snapshot) {},
			says: []string{secret.ErrNoKey.Error(), "--age-key-file"},
		},
		"a torn snapshot": {
			place: declared, gone: true, keys: mine, snapshot: func(*testing.T, *snapshot.Snapshot) {},
			spoil: func(t *testing.T, dir string) {
				t.Helper()
				files, err := filepath.Glob(filepath.Join(dir, "mgmt", "*"))
				if err != nil || len(files) != 1 {
					t.Fatalf("%q, %v", files, err)
				}
				if err := os.Truncate(files[0], 20); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"snapshot"},
		},
		"a place that cannot be read": {
			place: declared, gone: true, keys: mine,
			spoil: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.WriteFile(dir, []byte("a file"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"snapshots"},
		},
		"its clusters are another's since": {
			place: declared, gone: true, keys: mine, snapshot: owned("second", 1),
			says: []string{"shop/shop is managed by second", "nothing has been changed"},
		},
		"its clusters are nobody's since": {
			place: declared, gone: true, keys: mine, snapshot: owned("", 1), says: []string{"shop/shop was detached"},
		},
		"its clusters are another's since, and nobody says that it is gone": {
			place: declared, keys: mine, snapshot: owned("second", 1), says: []string{"shop/shop is managed by second"},
		},
		"its clusters were another's before": {place: declared, gone: true, keys: mine, snapshot: owned("second", 0), restores: true},
		"its clusters are its own":           {place: declared, gone: true, keys: mine, snapshot: owned("mgmt", 1), restores: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, place := newRunner(t, c.keys, c.place)
			b.opts.SourceIsGone = c.gone
			if c.snapshot != nil {
				s := good()
				c.snapshot(t, s)
				if err := snapshot.Put(t.Context(), place, s, mine); err != nil {
					t.Fatal(err)
				}
			}
			if c.spoil != nil {
				c.spoil(t, filepath.Join(b.session.Opts.Dir, "snapshots"))
			}
			err := b.fromSnapshot(t.Context())
			if c.says == nil && err != nil || c.says != nil && err == nil {
				t.Fatalf("got %v (%s)", err, diag.Hint(err))
			}
			for _, want := range c.says {
				if text := err.Error() + "\n" + diag.Hint(err); !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}
			if (b.restore != nil) != c.restores {
				t.Errorf("it restores: %t", b.restore != nil)
			}
			if records, err := b.session.Deps.Store.Readable(); err != nil || len(records) > 0 {
				t.Errorf("a look has left %v, %v", records, err)
			}
		})
	}
}
