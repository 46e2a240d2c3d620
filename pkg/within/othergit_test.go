package within

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// A commit has no files of a repository in the repository, and so has nobody who reads what Flux would get of the folder.
func TestFSOfOtherRepositories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		".git/HEAD", "a", "b/c", // the repository itself
		"submodule/.git", "submodule/a.yaml", "submodule/deep/a.yaml", // as git checks one out
		"clone/inner/.git/HEAD", "clone/inner/a.yaml", "clone/b", // as somebody clones one
		"none/a", // with an empty folder that is no repository
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), "content of "+name)
	}
	if err := os.Mkdir(filepath.Join(dir, "none", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := FS(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"submodule/a.yaml", "submodule/deep", "submodule/deep/a.yaml", "submodule/.git", "clone/inner/a.yaml"} {
		if _, err := files.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is opened: %v", name, err)
		}
	}
	const want = ". .git .git/HEAD a b b/c clone clone/b clone/inner none none/.git none/a submodule"
	var seen []string
	visit := func(name string, _ fs.DirEntry, err error) error {
		seen = append(seen, name)
		return err
	}
	if err := fs.WalkDir(files, ".", visit); err != nil {
		t.Error(err)
	}
	if got := strings.Join(seen, " "); got != want {
		t.Errorf("walked %s", got)
	}
	seen = nil
	if err := WalkDir(dir, ".", visit); err != nil {
		t.Error(err)
	}
	if got := strings.Join(seen, " "); got != want {
		t.Errorf("WalkDir walked %s", got)
	}
	if err := fstest.TestFS(files, "a", "b/c", "clone/b", "clone/inner", "none/a", "submodule"); err != nil {
		t.Error(err)
	}
}
