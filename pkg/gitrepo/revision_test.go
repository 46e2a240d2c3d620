package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// The files of a commit are the same that Git has, whatever the working tree looks like.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main")
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(message string) {
		t.Helper()
		gittest.Git(t, dir, "add", "--all")
		gittest.Git(t, dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", message)
	}
	write("fleet.yaml", "one\n")
	write("a/b/c.yaml", "deep\n")
	write("empty", "")
	commit("first")
	gittest.Git(t, dir, "branch", "other")
	write("fleet.yaml", "two\n")
	commit("second")
	gittest.Git(t, dir, "tag", "v2")
	write("fleet.yaml", "in no commit\n")

	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Resolve("HEAD~1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.Resolve("v2")
	if err != nil {
		t.Fatal(err)
	}
	if base, err := r.MergeBase(second, first); err != nil || base != first {
		t.Errorf("the merge base is %s (%v), want %s", base, err, first)
	}
	if base, err := r.MergeBase(second, second); err != nil || base != second {
		t.Errorf("the merge base with itself is %s (%v)", base, err)
	}
	for revision, want := range map[string]string{first: "one\n", second: "two\n"} {
		files, err := r.Files(revision)
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(files, "fleet.yaml", "a/b/c.yaml", "empty"); err != nil {
			t.Error(err)
		}
		content, err := fs.ReadFile(files, "fleet.yaml")
		if err != nil || string(content) != want {
			t.Errorf("fleet.yaml is %q (%v), want %q", content, err, want)
		}
		for _, name := range []string{"none", "fleet.yaml/x", "../fleet.yaml", "/fleet.yaml", "a//b"} {
			if _, err := files.Open(name); err == nil || !slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrInvalid},
				func(e error) bool { return errors.Is(err, e) }) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	for _, revision := range []string{"nowhere", "", "HEAD~9", "refs/heads/none"} {
		if hash, err := r.Resolve(revision); diag.Code(err) != diag.ExitUsage {
			t.Errorf("%q: got %s, %v", revision, hash, err)
		}
	}
	gittest.Git(t, dir, "checkout", "--quiet", "--force", "--orphan", "fresh")
	commit("a history of its own")
	fresh, err := r.Resolve("fresh")
	if err != nil {
		t.Fatal(err)
	}
	if base, err := r.MergeBase(fresh, second); err == nil || diag.Hint(err) == "" {
		t.Errorf("nothing in common: got %q, %v", base, err)
	}
}

// In a partial clone, contents that are not there are told as that, with a remedy; all else can be read.
func TestFilesOfAPartialClone(t *testing.T) {
	dir := t.TempDir()
	from, clone := filepath.Join(dir, "from"), filepath.Join(dir, "clone")
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main", from)
	gittest.Git(t, from, "config", "uploadpack.allowFilter", "true")
	for name, size := range map[string]int{"a.yaml": 10, "picture.jpg": 5000} {
		if err := os.WriteFile(filepath.Join(from, name), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Git(t, from, "add", "--all")
	gittest.Git(t, from, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "first")
	gittest.Git(t, dir, "clone", "--quiet", "--no-checkout", "--filter=blob:limit=1k", "file://"+filepath.ToSlash(from), clone)

	for _, whole := range []bool{false, true} {
		if whole { // as the hint says
			gittest.Git(t, clone, "fetch", "--quiet", "--refetch", "--no-filter")
		}
		r, err := Open(clone)
		if err != nil {
			t.Fatal(err)
		}
		head, err := r.Resolve("HEAD")
		if err != nil {
			t.Fatal(err)
		}
		files, err := r.Files(head)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := fs.ReadFile(files, "a.yaml"); err != nil || len(text) != 10 {
			t.Errorf("what is there: %d bytes, %v", len(text), err)
		}
		_, read := fs.ReadFile(files, "picture.jpg")
		_, asked := fs.Stat(files, "picture.jpg")
		for _, err := range []error{read, asked} {
			if whole != (err == nil) || !whole && (!errors.Is(err, ErrNotHere) || diag.Hint(err) == "") {
				t.Errorf("what the clone has %v: %v (%s)", whole, err, diag.Hint(err))
			}
		}
	}
}

// A submodule is an empty folder, as Flux gets it: whoever goes through the files of the commit goes on.
func TestFilesBesideASubmodule(t *testing.T) {
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main")
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "add", "--all")
	gittest.Git(t, dir, "update-index", "--add", "--cacheinfo", "160000,0123456789012345678901234567890123456789,ext/sub")
	gittest.Git(t, dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "a")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := r.Resolve("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.Files(head)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	err = fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error { seen = append(seen, name); return err })
	if want := []string{".", "a.yaml", "ext", "ext/sub"}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("seen %v (%v), want %v", seen, err, want)
	}
	if err := fstest.TestFS(files, "a.yaml", "ext/sub"); err != nil {
		t.Error(err)
	}
}
