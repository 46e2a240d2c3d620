package state

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// What this machine has made is known for each fleet and name, outlives the folder of the management cluster, and does not grow without
// end.
func TestMade(t *testing.T) {
	const mine, theirs, first = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", "0c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", "first"
	s := Store{Dir: t.TempDir()}
	c := s.Cluster("mgmt")
	if c.HasMade(mine, first) || c.LastMade(mine) != "" {
		t.Error("it has made one before it made one")
	}
	for _, uid := range []string{first, "second", first} {
		if err := c.NoteMade(mine, uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if !c.HasMade(mine, first) || c.LastMade(mine) != "second" {
		t.Error("it is forgotten")
	}
	if c.HasMade(theirs, first) || s.Cluster("other").HasMade(mine, first) || c.HasMade("", first) || c.HasMade(mine, "") ||
		c.HasMade(mine, "fir") {
		t.Error("it is another one's")
	}
	if info, err := os.Stat(c.noteFile(madeDir, mine)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	for i := range mostMade {
		if err := c.NoteMade(mine, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if c.HasMade(mine, first) || !c.HasMade(mine, "0") || len(c.made(mine)) != mostMade {
		t.Errorf("%d are kept", len(c.made(mine)))
	}
	if err := c.NoteMade("../../outside", first); err != nil || c.HasMade("../../outside", first) {
		t.Errorf("what is no identity is one: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "outside")); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
	if records, err := s.Readable(); err != nil || len(records) > 0 {
		t.Errorf("there are records: %v, %v", records, err)
	}
}
