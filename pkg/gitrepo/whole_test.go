package gitrepo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// Whoever reads a branch, a tag or the configuration while it is written, as after a kill, finds the old or the new one: never an empty
// file.
func TestReferencesAreReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	r, err := InitLocal(dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	hashes := []plumbing.Hash{plumbing.NewHash(strings.Repeat("1", 40)), plumbing.NewHash(strings.Repeat("2", 40))}
	ref := plumbing.NewBranchReferenceName("main")
	set := func(to, from *plumbing.Hash) {
		t.Helper()
		var old *plumbing.Reference
		if from != nil {
			old = plumbing.NewHashReference(ref, *from)
		}
		if err := r.git.Storer.CheckAndSetReference(plumbing.NewHashReference(ref, *to), old); err != nil {
			t.Fatal(err)
		}
	}
	set(&hashes[0], nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, name := range []string{"refs/heads/main", "config"} {
				content, err := os.ReadFile(filepath.Join(dir, ".git", filepath.FromSlash(name)))
				if err != nil || len(content) == 0 || name != "config" && len(content) != 41 {
					t.Errorf("%s: %q, %v", name, content, err)
					return
				}
			}
		}
	}()
	for i := range 100 {
		set(&hashes[(i+1)%2], &hashes[i%2])
		cfg, err := r.git.Storer.Config()
		if err == nil {
			err = r.git.Storer.SetConfig(cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-done
	if err := r.git.Storer.CheckAndSetReference(plumbing.NewHashReference(ref, hashes[1]),
		plumbing.NewHashReference(ref, hashes[1])); err == nil {
		t.Error("a branch that is elsewhere was moved")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".git", "info", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
