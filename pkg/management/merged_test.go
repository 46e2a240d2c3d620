package management

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/state"
)

// `fleetctl kubeconfig --merge` holds no lock. It undoes neither the pivot nor the teardown that ended while it asked for the kubeconfig.
func TestNoteMergedKeepsWhatOthersNoted(t *testing.T) {
	store := state.Store{Dir: t.TempDir()}
	cluster := store.Cluster("mgmt")
	record := state.Record{Fleet: "acme", HostType: "kind"}
	if err := cluster.Save(record); err != nil {
		t.Fatal(err)
	}
	target, err := Find(store, "mgmt", "")
	if err != nil {
		t.Fatal(err)
	}
	record.PivotedTo = "platform/platform"
	if err := cluster.Save(record); err != nil {
		t.Fatal(err)
	}
	if err := target.noteMerged("/home/me/.kube/config"); err != nil {
		t.Fatal(err)
	}
	if r, err := cluster.Load(); err != nil || r.PivotedTo != record.PivotedTo || r.MergedInto != "/home/me/.kube/config" {
		t.Errorf("the record is %+v, %v", r, err)
	}
	if err := cluster.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := target.noteMerged("/home/me/.kube/config"); err != nil {
		t.Fatal(err)
	}
	if r, err := cluster.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed record is there again: %+v, %v", r, err)
	}
}
