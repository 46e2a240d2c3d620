package state

import (
	"os"
	"path/filepath"
	"testing"
)

// A note of an end is one fleet's, private, outlives the folder of the management cluster, and goes when there is one again.
func TestEnded(t *testing.T) {
	const mine, theirs = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", "0c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"
	s := Store{Dir: t.TempDir()}
	c := s.Cluster("mgmt")
	if err := c.Save(Record{FleetID: mine}); err != nil {
		t.Fatal(err)
	}
	if c.Ended(mine) {
		t.Error("it has ended before it was")
	}
	for range 2 {
		if err := c.NoteEnded(mine); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if !c.Ended(mine) || c.Ended(theirs) || s.Cluster("other").Ended(mine) || c.Ended("") {
		t.Error("the note is of another one, or lost")
	}
	if records, err := s.Readable(); err != nil || len(records) > 0 {
		t.Errorf("there are records: %v, %v", records, err)
	}
	if info, err := os.Stat(c.endedFile(mine)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	if err := c.Save(Record{FleetID: theirs}); err != nil || !c.Ended(mine) {
		t.Errorf("another fleet's took it away: %v", err)
	}
	if err := c.Save(Record{FleetID: mine}); err != nil || c.Ended(mine) {
		t.Errorf("it is there, and has ended: %v", err)
	}
	const hostile = "../../outside"
	if err := c.NoteEnded(hostile); err != nil || c.Ended(hostile) {
		t.Errorf("%q is an identity: %v", hostile, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "outside")); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}
