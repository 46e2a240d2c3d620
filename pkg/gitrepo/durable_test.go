package gitrepo

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// Every object of a commit is flushed to disk before the reference is written, also the objects of an earlier run. If flushing fails, no
// reference is written.
func TestObjectsAreFlushedBeforeTheirReference(t *testing.T) {
	dir := t.TempDir()
	if _, err := InitLocal(dir, "main"); err != nil {
		t.Fatal(err)
	}
	change := []Change{{Path: "a/b/file", Content: []byte("content")}, {Path: "top", Content: []byte("other")}}
	for _, run := range []string{"first", "again, after a kill"} {
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		commit, err := r.recordApart(t.Context(), revision{parents: []plumbing.Hash{{}}, changes: change, message: "first"})
		if err != nil {
			t.Fatal(err)
		}
		loose, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "??", "*"))
		if err != nil || len(loose) < 5 {
			t.Fatalf("%v, %v", loose, err)
		}
		for _, object := range loose {
			name, err := filepath.Rel(filepath.Join(dir, ".git"), object)
			if err != nil {
				t.Fatal(err)
			}
			if name = filepath.ToSlash(name); !r.disk.pending[name] && (run == "first" || strings.HasSuffix(object, commit.String()[2:])) {
				t.Errorf("%s: nobody flushes %s", run, name)
			}
		}
		ref := plumbing.NewHashReference("refs/heads/other", commit)
		r.disk.pending["objects/info/file/below a file"] = true
		write(t, filepath.Join(dir, ".git", "objects", "info", "file"))
		if err := r.git.Storer.SetReference(ref); err == nil {
			t.Errorf("%s: there is a reference to what could not be flushed", run)
		}
		if _, err := os.Stat(filepath.Join(dir, ".git", "refs", "heads", "other")); err == nil {
			t.Errorf("%s: the reference is there", run)
		}
		delete(r.disk.pending, "objects/info/file/below a file")
		if run == "first" {
			continue
		}
		if err := r.git.Storer.SetReference(ref); err != nil || len(r.disk.pending) > 0 {
			t.Errorf("%s: %v is not flushed, %v", run, r.disk.pending, err)
		}
	}
}

// The index of a pack appears only once it is complete, because go-git uses an existing index without checking it.
func TestPackIndexIsWhole(t *testing.T) {
	dir := t.TempDir()
	r, err := InitLocal(dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.disk.Create("objects/pack/pack-1.idx")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".git", "objects", "pack", "pack-1.idx")
	if _, err := os.Stat(path); err == nil {
		t.Error("it is there before it is whole")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "half" {
		t.Errorf("%q, %v", content, err)
	}
}

// Files that killed runs have left are removed from the working tree and from .git. Files of live runs, committed files, and files of
// another repository stay.
func TestCommitSweeps(t *testing.T) {
	dir := t.TempDir()
	r, err := InitLocal(dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	committed := filepath.ToSlash(filepath.Join("a", filepath.Base(atomicfile.TempName("mine"))))
	if _, _, err := r.Commit(t.Context(), []Change{{Path: "a/b", Content: []byte("content")}, {Path: committed, Content: []byte("mine")}},
		"first", Author{}); err != nil {
		t.Fatal(err)
	}
	gone := []string{
		atomicfile.TempName("a/b"), atomicfile.TempName("c/d"), atomicfile.TempName(".git/index"), atomicfile.TempName(".git/info/main"),
		".git/" + hookIndexFile, ".git-fleetctl-1/HEAD",
	}
	kept := []string{committed, atomicfile.TempName("other/file"), "other/.git/HEAD", "a/.fleetctl-mine"}
	for _, name := range append(gone, kept...) {
		if name == committed {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name))
	}
	link := atomicfile.TempName("a/link")
	if err := os.Symlink("b", filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	alive, err := atomicfile.Stage(root, "a/alive", []byte("whole"), 0o600, true)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Commit(t.Context(), []Change{{Path: "a/b", Content: []byte("more")}}, "second", Author{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(gone, link) {
		if _, err := root.Lstat(name); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range kept {
		if _, err := root.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	if err := alive.Place(); err != nil {
		t.Errorf("swept away under its writer: %v", err)
	}
}

// Files and folders may take each other's places in a commit. Afterwards exactly the files of the commit exist.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	r, err := InitLocal(dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	var first, second []Change
	for i := range 2*putAtOnce + 3 {
		name := "d" + strings.Repeat("x", i%7) + "/" + plumbing.ComputeHash(plumbing.BlobObject, []byte{byte(i), byte(i >> 8)}).String()
		first = append(first, Change{Path: name, Content: []byte("one")})
		second = append(second, Change{Path: name, Delete: true}, Change{Path: name + "/below", Content: []byte("two"), Executable: i%2 == 0})
	}
	for _, changes := range [][]Change{first, second} {
		if _, _, err := r.Commit(t.Context(), changes, "many", Author{}); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.IsDir():
			if files++; d.Name() != "below" {
				t.Errorf("left: %s", path)
			}
		}
		return nil
	})
	if err != nil || files != len(first) {
		t.Errorf("%d files, %v", files, err)
	}
	if dirty, err := r.Dirty(t.Context()); err != nil || len(dirty) > 0 {
		t.Errorf("dirty: %v, %v", dirty, err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A write that fails leaves no file behind, so that retries do not fill a full disk further.
func TestHalfAnObjectLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	r, err := InitLocal(dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("content")
	hash := plumbing.ComputeHash(plumbing.BlobObject, content).String()
	write(t, filepath.Join(dir, ".git", "objects", hash[:2])) // where the folder of the object belongs
	if _, err := r.recordApart(t.Context(), revision{
		parents: []plumbing.Hash{{}}, changes: []Change{{Path: "file", Content: content}},
		message: "first",
	}); err == nil {
		t.Error("the commit is made without one of its files")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "pack", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
