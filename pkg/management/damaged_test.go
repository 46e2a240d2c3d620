package management

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/state"
)

// A damaged record hides no other host, and is listed with what to do about it. It does not keep a mistyped name from being told.
func TestDamagedRecordHidesNoHost(t *testing.T) {
	store := state.Store{Dir: t.TempDir()}
	for _, name := range []string{"a", "c"} {
		if err := store.Cluster(name).Save(state.Record{Fleet: "acme", HostType: "embedded"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Cluster("b").Write("cluster.json", []byte(`{"name": "`)); err != nil {
		t.Fatal(err)
	}
	list, err := ListHosts(t.Context(), Deps{Store: store})
	if err != nil || len(list.Hosts) != 3 || list.Hosts[0].Name != "a" || list.Hosts[2].Name != "c" {
		t.Fatalf("%+v, %v", list, err)
	}
	if b := list.Hosts[1]; b.Name != "b" || b.State != unknownState || !strings.Contains(b.Error, "`fleetctl connect --management b`") {
		t.Errorf("%+v", b)
	}
	target, err := Find(store, "aa", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := target.CheckKnown(); err == nil || !strings.Contains(err.Error(), "aa") {
		t.Errorf("%v", err)
	}
}
