package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lend makes another repository that has all objects of dir, in a pack.
func lend(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	run(t, other, "init", "-q", "--bare")
	run(t, dir, "push", "-q", other, "HEAD:main")
	run(t, other, "repack", "-a", "-d", "-q")
	return other
}

// borrow takes the objects of dir away that another folder has.
func borrow(t *testing.T, dir, objects string) {
	t.Helper()
	write(t, dir, ".git/objects/info/alternates", objects+"\n")
	run(t, dir, "repack", "-a", "-d", "-l", "-q")
	run(t, dir, "prune-packed", "-q")
	if count := run(t, dir, "count-objects"); !strings.HasPrefix(count, "0 objects") {
		t.Fatalf("the repository has objects itself: %s", count)
	}
}

func chmod(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

func link(name, target string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
}
