package pivot

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// putFile writes a file of a fleet repo.
func putFile(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newRestoration is a restore of a snapshot of first with the cluster shop, whose API server does not answer, on a machine that knows only
// the fleet repo. The fleet repo declares shop at the management cluster of that name, or nowhere.
func newRestoration(t *testing.T, declaredAt string) (*Restoration, *recorder) {
	t.Helper()
	dir, heard := t.TempDir(), &recorder{}
	putFile(t, dir, v1alpha1.FileName, `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://git.example.com/fleet.git"}
  environments: [{name: prod}]
  managementClusters:
  - {name: first, cloud: first, host: {type: embedded}, providers: [{name: docker, version: v1.14.2}]}
  - {name: second, parent: first, cloud: second, providers: [{name: docker, version: v1.14.2}]}
`)
	putFile(t, dir, fleetrepo.IdentityFile, string(fleetrepo.IdentityContent(lostFleetID)))
	if declaredAt != "" {
		repo, err := fleetrepo.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		edit, err := repo.Add(fleetrepo.AddOptions{
			Name: "shop", Environment: "prod", ManagementCluster: declaredAt, Flavour: "in-memory", KubernetesVersion: "v1.36.3",
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range edit.Changes.Files() {
			putFile(t, dir, f.Path, string(f.Content))
		}
	}
	deps := management.Deps{
		Report: heard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
	}
	s, err := session.Open(t.Context(), deps, session.Options{Dir: dir, Cluster: "first"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	silent := httptest.NewServer(nil)
	silent.Close()
	kubeconfig := "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '" + silent.URL +
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	r := NewRestoration(converge.NewRun(s))
	r.Snap = &snapshot.Snapshot{
		ID: "20260101T000000Z-abcdef", Taken: time.Now(), By: "runner-1", Fleet: s.Identity(), ManagementCluster: "first", UID: "lost",
		Clusters: []string{"shop/shop"}, Objects: []capi.Portable{{Object: json.RawMessage(shop)}, {Object: json.RawMessage(
			`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"shop-kubeconfig"},"data":{"value":"` +
				base64.StdEncoding.EncodeToString([]byte(kubeconfig)) + `"}}`)}},
	}
	return r, heard
}

const lostFleetID = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"

// The fleet repo knows of a cluster that does not answer whether it was transferred: the cluster would have two owners.
func TestRestoreAsksTheFleetRepoForOwners(t *testing.T) {
	const could = "1 cluster could not be asked for the owner"
	for name, test := range map[string]struct {
		at, record string // where the fleet repo declares the cluster, and what the record of hand-overs has
		owner      string
	}{
		"where the snapshot has it":        {at: "first"},
		"removed, or detached":             {},
		"transferred":                      {at: "second", owner: "belongs to second in the fleet repo"},
		"transferred to a repo of its own": {record: "handedOver: [{cluster: prod/shop}]\n", owner: "belongs to second in the fleet repo"},
		"transferred, and back":            {at: "first", record: "handedOver: [{cluster: prod/shop}]\n"},
		"another one was transferred":      {record: "handedOver: [{cluster: shop/other}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, heard := newRestoration(t, test.at)
			if test.record != "" {
				putFile(t, r.session.Opts.Dir, r.session.Layout().HandedOver("second"), test.record)
			}
			err := r.Check(t.Context(), true)
			said := strings.Join(heard.warned, "\n")
			if test.owner == "" {
				if err != nil || !strings.Contains(said, could) || !strings.Contains(said, "shop/shop") || len(r.paused) > 0 {
					t.Errorf("%v, paused %v, it warns %q", err, r.paused, said)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "shop/shop "+test.owner) || !strings.Contains(diag.Hint(err), "--pause-elsewhere") {
				t.Fatalf("%v (%s)", err, diag.Hint(err))
			}
			r.pauseElsewhere = true
			if err := r.Check(t.Context(), true); err != nil || !slices.Equal(r.paused, []string{"shop/shop"}) {
				t.Errorf("%v, paused %v", err, r.paused)
			}
			d := &drill{session: r.session, snap: r.Snap, result: &DrillResult{}}
			if err := d.readOwners(t.Context()); err != nil || !strings.Contains(strings.Join(d.problems(), "\n"), "shop/shop "+test.owner) {
				t.Errorf("a drill finds %q, %v", d.problems(), err)
			}
		})
	}
	r, _ := newRestoration(t, "")
	putFile(t, r.session.Opts.Dir, r.session.Layout().HandedOver("second"), "handedOver: [{cluster: [}]\n")
	if err := r.Check(t.Context(), true); err == nil || !strings.Contains(diag.Hint(err), "correct it in an editor") {
		t.Errorf("a record that nobody can read: %v (%s)", err, diag.Hint(err))
	}
}

// Where the fleet repo names another cluster in place of the snapshot's, an earlier restore may have made one that lives.
func TestRestoreNamesALaterOne(t *testing.T) {
	for name, test := range map[string]struct {
		uid   string
		later bool
	}{"the snapshot's": {uid: "lost"}, "another": {uid: "another", later: true}, "none": {}} {
		t.Run(name, func(t *testing.T) {
			r, heard := newRestoration(t, "first")
			if test.uid != "" {
				putFile(t, r.session.Opts.Dir, r.session.Layout().Identity(),
					"{uid: "+test.uid+", at: '2026-11-23T11:00:00Z', by: somebody else}\n")
			}
			const who = "2026-11-23T11:00:00Z, somebody else"
			err := r.Check(t.Context(), false)
			if err == nil || strings.Contains(err.Error(), "made again since the snapshot ("+who+")") != test.later {
				t.Errorf("without the flag: %v", err)
			}
			err = r.Check(t.Context(), true)
			if said := strings.Join(heard.warned, "\n"); err != nil || strings.Contains(said, "since the snapshot ("+who+")") != test.later {
				t.Errorf("with the flag: %v, it warns %q", err, said)
			}
		})
	}
}
