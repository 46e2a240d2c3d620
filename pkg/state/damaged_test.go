package state

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A damaged record keeps the user from its own management cluster only, and the error says how the way there is found again.
func TestDamagedRecordHidesNoOther(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	for _, name := range []string{"good", "hurt"} {
		if err := store.Cluster(name).Save(Record{Fleet: "acme"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, content := range []string{"", `{"name": "hu`, "\x00\x00", `{"name": "another"}`} {
		if err := store.Cluster("hurt").Write(recordFile, []byte(content)); err != nil {
			t.Fatal(err)
		}
		all, err := store.ListOf(func(name string) bool { return name == "good" })
		if err != nil || len(all) != 1 || all[0].Name != "good" {
			t.Errorf("%q: %+v, %v", content, all, err)
		}
		if all, err := store.Readable(); err != nil || len(all) != 1 || all[0].Name != "good" {
			t.Errorf("%q: %+v, %v", content, all, err)
		}
		_, err = store.ListOf(func(name string) bool { return name == "hurt" })
		if err == nil || !strings.Contains(diag.Hint(err), "`fleetctl connect") {
			t.Errorf("%q: %v (%s)", content, err, diag.Hint(err))
		}
	}
}
