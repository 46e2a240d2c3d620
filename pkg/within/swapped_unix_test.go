//go:build unix

package within

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A pipe that takes the place of a file, after somebody has seen that it is a file, makes nobody wait.
func TestSwappedForAPipe(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(name, []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := FS(dir)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := fs.ReadFile(files, "a.yaml"); err != nil || string(content) != "a: b\n" {
		t.Fatalf("%q: %v", content, err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	pipe(t, name)

	if _, err := fs.ReadFile(files, "a.yaml"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a FS that has listed the file: %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if f, err := Open(root, "a.yaml"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("got %v, %v", f, err)
	}
}
