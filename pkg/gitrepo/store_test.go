package gitrepo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// packed makes a repository all of whose objects are in a pack, and opens it after it has read some of them.
func packed(t *testing.T) (string, *gitrepo.Repo) {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	commitFile(t, dir, "a", "1")
	run(t, dir, "repack", "-a", "-d", "-q")
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, repo, "a", "1")
	return dir, repo
}

func commitFile(t *testing.T, dir, name, content string) {
	t.Helper()
	write(t, dir, name, content)
	run(t, dir, "add", name)
	run(t, dir, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "add "+name)
}

// wantFile reads a file of the checked out commit from the repository.
func wantFile(t *testing.T, repo *gitrepo.Repo, name, content string) {
	t.Helper()
	head, err := repo.Head()
	if err != nil {
		t.Fatal(err)
	}
	files, err := repo.Files(head)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(files, name); err != nil || string(got) != content {
		t.Errorf("%s is %q, %v, want %q", name, got, err, content)
	}
}

// What git writes into a pack while fleetctl has the repository open is found.
func TestPackOfAnother(t *testing.T) {
	t.Parallel()
	dir, repo := packed(t)
	for _, name := range []string{"b", "c"} {
		commitFile(t, dir, name, "2")
		run(t, dir, "repack", "-d", "-q") // a pack more
		run(t, dir, "prune-packed", "-q")
		wantFile(t, repo, name, "2")
	}
}

// `git gc` moves all objects into another pack while fleetctl has the repository open.
func TestPacksReplaced(t *testing.T) {
	t.Parallel()
	dir, repo := packed(t)
	for _, name := range []string{"b", "c"} {
		commitFile(t, dir, name, "2")
		run(t, dir, "gc", "-q", "--prune=now")
		wantFile(t, repo, "a", "1")
		wantFile(t, repo, name, "2")
	}
	// A commit that was never read, in a pack that is gone.
	base := strings.TrimSpace(run(t, dir, "rev-parse", "HEAD~2"))
	if _, err := repo.Log(t.Context(), base, ""); err != nil {
		t.Error(err)
	}
}

// A pack is there before its index, and only git's own programs see which.
func TestPackWithoutIndex(t *testing.T) {
	t.Parallel()
	dir, repo := packed(t)
	commitFile(t, dir, "b", "2")
	packs := filepath.Join(dir, ".git", "objects", "pack")
	begun := filepath.Join(packs, "pack-"+strings.Repeat("12", 20)+".pack")
	if err := os.WriteFile(begun, []byte("PACK"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "status") // git has nothing against it
	again, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, repo := range []*gitrepo.Repo{repo, again} {
		wantFile(t, repo, "a", "1")
		wantFile(t, repo, "b", "2")
	}
}
