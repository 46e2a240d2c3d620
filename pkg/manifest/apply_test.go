package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The last of three changes cannot be carried out: a folder has taken its place since the plan was made. What was done
// before it must be put back, with its permissions, and nothing else be left.
func TestUndo(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"update": 0o755, "delete": 0o640} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old "+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	var cs ChangeSet
	cs.Write(
		File{Path: "create/me", Content: []byte("new")},
		File{Path: "update", Content: []byte("new")},
		File{Path: "zz", Content: []byte("new")},
	)
	cs.Delete("delete")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	changes, err := cs.plan(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Mkdir("zz", 0o755); err != nil {
		t.Fatal(err)
	}
	tx := &transaction{root: root, temps: map[string]string{}}
	if err := tx.run(changes); err == nil {
		t.Fatal("a file took the place of a folder")
	}
	var left []string
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		left = append(left, filepath.Base(path))
		return err
	})
	if want := []string{filepath.Base(dir), "delete", "update", "zz"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v; want %v", left, err, want)
	}
	for name, mode := range map[string]fs.FileMode{"update": 0o755, "delete": 0o640} {
		content, err := root.ReadFile(name)
		if err != nil || string(content) != "old "+name {
			t.Errorf("%s holds %q, %v", name, content, err)
		}
		if info, err := root.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, mode)
		}
	}
}

func TestSafeJoin(t *testing.T) {
	if got, err := SafeJoin("root", "a/b"); err != nil || got != filepath.Join("root", "a", "b") {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", ".", "..", "../a", "a/../..", "/a"} {
		if got, err := SafeJoin("root", bad); err == nil {
			t.Errorf("SafeJoin(%q) = %q", bad, got)
		}
	}
}
