package render_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

// An entry that was cut or changed is as if it were not there, and runs that share a cache do not disturb each other.
func TestCache(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	if err := rendertest.Write(dir, 9); err != nil {
		t.Fatal(err)
	}
	var all [4]string
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			if res, err := renderer(t, dir, cache).All(t.Context()); err == nil {
				all[i] = text(res)
			}
		})
	}
	group.Wait()
	for i := range all {
		if all[i] == "" || all[i] != all[0] {
			t.Errorf("run %d of %d at once is something else", i, len(all))
		}
	}
	entries := 0
	err := filepath.WalkDir(cache, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		entries++
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if entries%2 == 0 {
			content = content[:len(content)/2]
		} else {
			content[len(content)-3] ^= 1
		}
		return os.WriteFile(name, content, 0o600)
	})
	if err != nil || entries == 0 {
		t.Fatalf("%d entries, %v", entries, err)
	}
	res, err := renderer(t, dir, cache).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text(res) != all[0] || res.Findings != nil {
		t.Errorf("with a damaged cache it is something else: %v", res.Findings)
	}
}
