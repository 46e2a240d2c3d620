package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// The last of three changes fails, because a folder has taken the file's place since the plan was made. The earlier changes must be undone,
// with their permissions, and nothing else may be left.
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
	tx := &transaction{root: root, staged: map[string]*atomicfile.Staged{}}
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

// The next change removes the temporary files of a killed run, wherever they are. The files that another run is writing stay.
func TestApplySweeps(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"deep/er", "other/.git", ".git"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dead := atomicfile.TempName("deep/er/file")
	kept := []string{atomicfile.TempName("other/file"), atomicfile.TempName(".git/file")}
	for _, name := range append(kept, dead) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	alive, err := atomicfile.Stage(root, "deep/file", []byte("whole"), 0o600, true)
	if err != nil {
		t.Fatal(err)
	}
	var cs ChangeSet
	cs.Write(File{Path: "new", Content: []byte("new")})
	if _, err := cs.Apply(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Lstat(dead); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dead, err)
	}
	for _, name := range kept {
		if _, err := root.Lstat(name); err != nil {
			t.Errorf("in another repository: %v", err)
		}
	}
	if err := alive.Place(); err != nil {
		t.Errorf("swept away under its writer: %v", err)
	}
}
