package state

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A killed Remove can be run again: while any other file exists, the record exists, too, by which the cluster is found.
func TestRecordGoesLast(t *testing.T) {
	c := Store{Dir: t.TempDir()}.Cluster("acme")
	if err := c.Save(Record{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 { // on both sides of the record, in whatever order the system lists them
		if err := os.WriteFile(c.Path(fmt.Sprintf("%03d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	removed := make(chan error, 1)
	go func() { removed <- c.Remove() }()
	for {
		_, err := os.Stat(c.Path(recordFile))
		if err == nil {
			continue
		}
		left, err := filepath.Glob(c.Path("[0-9]*"))
		if err != nil || len(left) > 0 {
			t.Errorf("the record is gone, and %d files are there (%v)", len(left), err)
		}
		break
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := c.Remove(); err != nil {
		t.Errorf("once more: %v", err)
	}
}
