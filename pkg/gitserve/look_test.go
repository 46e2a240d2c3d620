package gitserve

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/gofrs/flock"
)

// Many who look at once find that nobody serves: they do not take each other for the server. And while one serves, all find it.
func TestLookersDoNotTakeEachOtherForTheServer(t *testing.T) {
	dir := t.TempDir()
	look := func(want bool) {
		t.Helper()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 200 {
					if got, err := alive(dir); err != nil || got != want {
						t.Errorf("runs: %v, %v; want %v", got, err, want)
						return
					}
				}
			})
		}
		group.Wait()
	}
	look(false)
	server := flock.New(filepath.Join(dir, aliveFile))
	if err := lockAlive(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	look(true)
	if err := server.Unlock(); err != nil {
		t.Fatal(err)
	}
	look(false)
}
