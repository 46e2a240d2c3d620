package state_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/state"
)

// TestLockGoesWithItsFolder: some commands lock a management cluster while others tear it down and make it again. Two commands never work
// on it at the same time, and no command loses the folder that it has made.
func TestLockGoesWithItsFolder(t *testing.T) {
	store := state.Store{Dir: t.TempDir()}
	const workers, rounds = 8, 300
	var working atomic.Int32
	var turns atomic.Int32
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range rounds {
				c := store.Cluster("mgmt")
				unlock, err := c.Lock("a test")
				if err != nil {
					continue // another has it
				}
				turns.Add(1)
				if n := working.Add(1); n != 1 {
					t.Errorf("%d work on it", n)
				}
				mine := filepath.Join(c.Dir, "mine")
				if err := os.WriteFile(mine, nil, 0o600); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(mine); err != nil {
					t.Error(err)
				}
				working.Add(-1)
				if err := c.Remove(); err != nil {
					t.Error(err)
				}
				unlock()
			}
		})
	}
	group.Wait()
	if turns.Load() == 0 {
		t.Error("nobody ever had the lock")
	}
	t.Logf("%d turns", turns.Load())
}

// On a full disk, a command still gets the lock and can read existing files. So an abort works on a full disk.
func TestFullDisk(t *testing.T) {
	c := state.Store{Dir: t.TempDir()}.Cluster("mgmt")
	if err := c.Write("way", []byte("there")); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(c.Path("way"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write("way", []byte("there")); err != nil {
		t.Error(err)
	}
	if after, err := os.Stat(c.Path("way")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same content took its space again: %v", err)
	}
	if err := os.MkdirAll(c.Path("lock-holder.json/full"), 0o700); err != nil { // nothing can be written in its place
		t.Fatal(err)
	}
	unlock, err := c.Lock("a test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lock("another"); err == nil {
		t.Error("two have the lock")
	}
	unlock()
	if unlock, err = c.Lock("a test"); err != nil {
		t.Fatal(err)
	}
	unlock()
}
