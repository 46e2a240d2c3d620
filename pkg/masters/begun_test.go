package masters

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

const mastersFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: masters}
spec:
  git: {url: "https://127.0.0.1:1/fleet.git"}
  environments: [{name: regions}, {name: prod}]
  managementClusters:
  - name: root
    cloud: root
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
  - name: eu
    parent: root
    cloud: eu
    providers: [{name: docker, version: v1.14.2}]
`

// openMasters is a fleet repo whose root makes eu, and the new management cluster as Bootstrap gets it.
func openMasters(t *testing.T, fleet string) *fleetrepo.Repo {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	for _, name := range []string{"eu", "early"} {
		add := fleetrepo.AddOptions{
			Name: name, Environment: "regions", ManagementCluster: "root", Flavour: "docker",
			KubernetesVersion: "v1.36.3",
		}
		if name == "early" {
			add.Environment, add.Flavour = "prod", "in-memory"
		}
		e, err := r.Add(add)
		r = apply(t, r, e, err)
	}
	return r
}

func open(t *testing.T, dir string) *fleetrepo.Repo {
	t.Helper()
	r, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// apply makes an edit, and reads the repo anew.
func apply(t *testing.T, r *fleetrepo.Repo, e *fleetrepo.Edit, err error) *fleetrepo.Repo {
	t.Helper()
	if err == nil {
		_, err = e.Changes.Apply(r.Dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return open(t, r.Dir)
}

func masterOf(t *testing.T, r *fleetrepo.Repo) *fleetrepo.Master {
	t.Helper()
	m, err := r.Master("eu", "prod")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func deps(t *testing.T) management.Deps {
	t.Helper()
	return management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
		LookupEnv: func(string) (string, bool) { return "", false },
	}
}

// A machine that has only Git learns from Git that a run had begun to hand the cluster over. The cluster may exist already, so it is not
// made a second time.
func TestNotASecondTime(t *testing.T) {
	r := openMasters(t, mastersFleet)
	e, err := r.BeginHandOver(masterOf(t, r), &fleetrepo.HandedOver{
		At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		By: "ci on runner-7", Version: "v1.2.3",
	})
	r = apply(t, r, e, err)
	store := deps(t)
	o := Options{BootstrapOptions: lifecycle.BootstrapOptions{
		Options:     session.Options{Dir: r.Dir},
		SupportFile: filepath.Join(t.TempDir(), "support.tar.gz"),
	}, Master: masterOf(t, r)}
	result, err := Bootstrap(t.Context(), store, o)
	if err == nil || result.Outcome != "failed" {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, want := range []string{"regions/eu, prod/early", "ci on runner-7", "neither the root that did nor eu", "made a second time"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	for _, want := range []string{"fleetctl connect --management eu --kubeconfig FILE", "--source-is-gone"} {
		if !strings.Contains(diag.Hint(err), want) {
			t.Errorf("the hint does not say %q: %s", want, diag.Hint(err))
		}
	}
	if known, err := store.Store.Readable(); err != nil || len(known) > 0 {
		t.Errorf("something was made: %v, %v", known, err)
	}
	m := &master{Deps: store, opts: o, result: &Result{Cluster: "eu", Parent: "root"}}
	for name, set := range map[string]func(*master){
		"somebody says that it is gone":         func(m *master) { m.opts.SourceIsGone = true },
		"one of the two has told of it":         func(m *master) { m.known = true },
		"the fleet repo says that it has ended": func(m *master) { m.opts.Master = &fleetrepo.Master{Name: "eu", Parent: "root"} },
	} {
		allowed := *m
		set(&allowed)
		if err := allowed.refuseBegun(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record of a parent that does not answer tells nothing about the hand-over: it may belong to another management cluster of the same
// name.
func TestNotASecondTimeByARecord(t *testing.T) {
	r := openMasters(t, mastersFleet)
	e, err := r.BeginHandOver(masterOf(t, r), &fleetrepo.HandedOver{
		At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		By: "ci on runner-7", Version: "v1.2.3",
	})
	r = apply(t, r, e, err)
	d := deps(t)
	if err := d.Store.Cluster("root").Save(state.Record{
		Name: "root", Fleet: "masters", Repo: r.Dir, GitURL: "https://127.0.0.1:1/fleet.git", HostType: "existing", Connected: true,
		KubeconfigSource: filepath.Join(t.TempDir(), "gone"),
	}); err != nil {
		t.Fatal(err)
	}
	m := &master{
		Deps: d, opts: Options{BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: r.Dir}}, Master: masterOf(t, r)},
		result: &Result{Cluster: "eu", Parent: "root"},
	}
	under, err := m.underWay(t.Context())
	if under || err != nil {
		t.Fatalf("under way: %t, %v", under, err)
	}
	err = m.refuseBegun()
	if err == nil || !strings.Contains(err.Error(), "has a record of root, which does not answer") ||
		!strings.Contains(diag.Hint(err), "fleetctl host start --management root") {
		t.Errorf("%v (%s)", err, diag.Hint(err))
	}
}

// transferOf is the change of the fleet repo by which eu takes a cluster over.
func transferOf(cluster string) fleetrepo.TransferOptions {
	return fleetrepo.TransferOptions{Cluster: cluster, To: "eu"}
}
