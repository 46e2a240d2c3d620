//go:build unix

package gitrepo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

func pipe(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Nothing waits for a pipe in the place of a file of git's: neither fleetctl nor the git that it would run.
func TestNoPipes(t *testing.T) {
	for _, name := range []string{
		".git/HEAD", ".git/config", ".git/index", ".git/packed-refs", ".git/info/exclude", ".git/info/attributes",
		".git/commondir", ".git/shallow",
		".git/refs/heads/main", ".git/refs/heads/other", ".git/hooks/pre-commit", ".git/objects/info/alternates", ".gitattributes", ".gitignore",
	} {
		dir := t.TempDir()
		if _, err := InitLocal(dir, "main"); err != nil {
			t.Fatal(err)
		}
		pipe(t, filepath.Join(dir, name))
		_, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), filepath.FromSlash(name)+" is a pipe") && !errors.Is(err, within.ErrNotRegular) ||
			strings.Contains(err.Error(), "pipe") && diag.Hint(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, diag.Hint(err))
		}
	}
	dir := t.TempDir()
	pipe(t, filepath.Join(dir, "objects/ab/cd"))
	if _, err := openFolder(dir).Open("objects/ab/cd"); !errors.Is(err, within.ErrNotRegular) {
		t.Errorf("an object: %v", err)
	}
}
