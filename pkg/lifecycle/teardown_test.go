package lifecycle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// What a machine remembers of a cluster may change until a command has its lock: one that was pivoted in between is nobody's to remove.
func TestTeardownReadsTheRecordUnderItsLock(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // a container engine that is installed here, and does not run, is no matter of this test
	store := state.Store{Dir: t.TempDir()}
	cluster := store.Cluster("mgmt")
	record := state.Record{Name: "mgmt", Fleet: "acme", HostType: "embedded", Ephemeral: true}
	find := func() *management.Target {
		t.Helper()
		if err := cluster.Save(record); err != nil {
			t.Fatal(err)
		}
		target, err := management.Find(store, "mgmt", "")
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	target := find()
	pivoted := record
	pivoted.PivotedTo = "acme/permanent"
	if err := cluster.Save(pivoted); err != nil {
		t.Fatal(err)
	}
	deps := management.Deps{Store: store, Report: progress.Discard}
	if _, err := Teardown(t.Context(), deps, TeardownOptions{Target: target}); err == nil {
		t.Error("a cluster that was pivoted meanwhile is torn down")
	} else if hint := diag.Hint(err); !strings.Contains(hint, "`fleetctl cluster transfer NAME --to OTHER`") {
		t.Errorf("the hint does not say what takes it down: %s", hint)
	}
	if r, err := cluster.Load(); err != nil || r.PivotedTo == "" {
		t.Errorf("its record is %v, %v", r, err)
	}

	target = find()
	if err := cluster.Remove(); err != nil { // by another command
		t.Fatal(err)
	}
	if _, err := Teardown(t.Context(), deps, TeardownOptions{Target: target}); err != nil {
		t.Error(err)
	}
	if _, err := cluster.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed has a record: %v", err)
	}
}

// A teardown of the parent of other management clusters names the command that lets them stand alone, because a pivot refuses them.
func TestTeardownNamesTheWayOutForManagementClusters(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://git.example.com/fleet.git"}
  environments: [{name: prod}]
  managementClusters:
  - {name: root, cloud: root, host: {type: embedded}, providers: [{name: docker}]}
  - {name: eu, parent: root, cloud: eu, providers: [{name: docker}]}
  - name: us
    parent: root
    cloud: us
    repository: {git: {url: "https://git.example.com/us.git"}, environments: [prod]}
    providers: [{name: docker}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := management.Find(state.Store{Dir: t.TempDir()}, "root", dir)
	if err != nil {
		t.Fatal(err)
	}
	const pivot, transfer = "fleetctl bootstrap --management root --pivot-to CLUSTER", "fleetctl cluster transfer NAME --to MANAGEMENT"
	alone := func(name string) string { return "fleetctl bootstrap --management " + name + " --stand-alone" }
	for _, test := range []struct {
		clusters, says, not []string
	}{
		{[]string{"shop"}, []string{pivot}, []string{"--stand-alone"}},
		{[]string{"eu"}, []string{alone("eu")}, []string{pivot, transfer}},
		{[]string{"eu", "us", "shop"}, []string{alone("eu"), alone("us"), transfer}, []string{pivot, alone("shop")}},
	} {
		down := &teardown{opts: TeardownOptions{Target: target}}
		for _, name := range test.clusters {
			down.clusters = append(down.clusters, capi.Cluster{Namespace: name, Name: name})
		}
		hint := diag.Hint(down.agree())
		for _, words := range append(test.says, "fleetctl teardown --management root --delete-clusters") {
			if !strings.Contains(hint, words) {
				t.Errorf("%v: the hint has no %q: %s", test.clusters, words, hint)
			}
		}
		for _, words := range test.not {
			if strings.Contains(hint, words) {
				t.Errorf("%v: the hint has %q: %s", test.clusters, words, hint)
			}
		}
	}
}

// What this machine has torn down it makes again without asking what has become of it. A note of it stays until it is there again.
func TestTeardownNotesTheEnd(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	store := state.Store{Dir: t.TempDir()}
	cluster := store.Cluster("mgmt")
	if err := cluster.Save(state.Record{Name: "mgmt", Fleet: "acme", FleetID: identity, HostType: "embedded"}); err != nil {
		t.Fatal(err)
	}
	target, err := management.Find(store, "mgmt", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Teardown(t.Context(), management.Deps{Store: store, Report: progress.Discard}, TeardownOptions{Target: target}); err != nil {
		t.Fatal(err)
	}
	if !cluster.Ended(identity) {
		t.Error("nothing says that it has ended")
	}
	if err := cluster.Save(state.Record{Name: "mgmt", Fleet: "acme", FleetID: identity, HostType: "embedded"}); err != nil {
		t.Fatal(err)
	}
	if cluster.Ended(identity) {
		t.Error("one that is there has ended")
	}
}
