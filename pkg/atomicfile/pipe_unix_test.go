//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What looked like a file of ours when a folder was listed may be a pipe by now, where others may write there: nobody waits for who writes
// to it.
func TestSweepOpensNoPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := removeAbandoned(root, "pipe"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "pipe")); err != nil {
		t.Errorf("it is removed: %v", err)
	}
}
