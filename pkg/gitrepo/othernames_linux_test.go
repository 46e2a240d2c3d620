package gitrepo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// Git takes names of files that are no UTF-8, and so do the files of a commit: each name that they list can be read.
// Other systems have no such names.
func TestFilesWithOtherNames(t *testing.T) {
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q", "-b", "main")
	want := map[string]string{"caf\xe9.txt": "notes", "\xfcber/a.yaml": "a: 1", "plain": "x"}
	for name, content := range want {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Git(t, dir, "add", "--all")
	gittest.Git(t, dir, "commit", "-q", "-m", "all")
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := repo.Head()
	if err != nil {
		t.Fatal(err)
	}
	files, err := repo.Files(head)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if string(content) != want[name] {
			t.Errorf("%q has the content %q, not %q", name, content, want[name])
		}
		seen++
		return err
	})
	if err != nil || seen != len(want) {
		t.Errorf("%d files: %v", seen, err)
	}
	for _, name := range []string{"../plain", "/plain", "a/../plain", ""} {
		if _, err := fs.Stat(files, name); err == nil {
			t.Errorf("%q was found", name)
		}
	}
}
