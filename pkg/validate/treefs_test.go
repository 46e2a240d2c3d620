package validate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

// The renderer gets the same from the files that were read as from the disk.
func TestTreeFS(t *testing.T) {
	dir := t.TempDir()
	if err := rendertest.Write(dir, 12); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"icon.png": "\x89PNG\x00", "empty.yaml": "", ".git/HEAD": "ref: refs/heads/main\n"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	disk, files := treeAndDisk(t, dir)
	if _, ok := files.(treeFS); !ok {
		t.Fatal("the files come from the disk")
	}
	seen := 0
	err := fs.WalkDir(disk, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == ".git" {
			return fs.SkipDir
		}
		seen++
		info, err := fs.Stat(files, name)
		if err != nil || info.IsDir() != entry.IsDir() || info.Name() != entry.Name() || info.Mode().IsRegular() != entry.Type().IsRegular() {
			t.Errorf("%s is %v (%v)", name, info, err)
		}
		if !entry.IsDir() {
			want, err := fs.ReadFile(disk, name)
			got, err2 := fs.ReadFile(files, name)
			if err := errors.Join(err, err2); err != nil || !bytes.Equal(got, want) || info.Size() != int64(len(want)) {
				t.Errorf("%s reads otherwise (%v)", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		seen--
		return err
	})
	if err != nil || seen != 0 {
		t.Errorf("the tree lists %d fewer (%v)", seen, err)
	}
	for _, name := range []string{"nothing", "charts/nothing", "fleet.yaml/nothing", ".git/HEAD", "../fleet.yaml", ""} {
		if f, err := files.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, %v", name, f, err)
		}
	}
}

// Where there is more than the tree has, nothing comes of it.
func TestTreeFSPartial(t *testing.T) {
	for name, add := range map[string]func(dir string) error{
		"link":   func(dir string) error { return os.Symlink("fleet.yaml", filepath.Join(dir, "other.yaml")) },
		"folder": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "charts", "node_modules"), 0o755) },
	} {
		dir := t.TempDir()
		if err := rendertest.Write(dir, 1); err != nil {
			t.Fatal(err)
		}
		if err := add(dir); err != nil {
			t.Fatal(err)
		}
		if disk, files := treeAndDisk(t, dir); files != disk {
			t.Errorf("%s: the files come from the tree", name)
		}
	}
}

func treeAndDisk(t *testing.T, dir string) (disk, files fs.FS) {
	t.Helper()
	tree, findings, err := readTree(t.Context(), dir, v1alpha1.Exclusion{})
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	if disk, err = render.Dir(dir); err != nil {
		t.Fatal(err)
	}
	return disk, tree.filesOver(disk)
}
