package lifecycle

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

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
