package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// A dropped tag is gone, whether or not git has packed it, and git sees all other references as before.
func TestDropTag(t *testing.T) {
	remote := gittest.NewRepo(t, gittest.Options{})
	first := remote.Seed(t, "main", map[string]string{"a": "1"})
	second := remote.Seed(t, "main", map[string]string{"a": "2"})
	for name, pack := range map[string]bool{"loose": false, "packed": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gittest.Git(t, dir, "clone", "-q", "-b", "main", remote.Dir, ".")
			git := func(args ...string) string { return gittest.Git(t, dir, args...) }
			for _, tag := range []string{"a", "b/c", "m", "z"} {
				git("tag", "-a", "-m", tag, tag, first)
			}
			git("tag", "light", second)
			if pack {
				git("pack-refs", "--all")
				git("tag", "-f", "-a", "-m", "newer than the packed one", "m", first)
			}
			before := git("show-ref", "--dereference", "--head")
			repo, err := gitrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			drop := func(name, commit string) {
				t.Helper()
				if err := repo.DropTag(t.Context(), name, commit); err != nil {
					t.Errorf("drop %s: %v", name, err)
				}
			}
			drop("a", second) // it is on another commit
			drop("absent", first)
			if diff := cmp.Diff(before, git("show-ref", "--dereference", "--head")); diff != "" {
				t.Errorf("something was dropped (-want +got)\n%s", diff)
			}
			gone := map[string]string{"m": first, "b/c": first, "light": second}
			for name, commit := range gone {
				drop(name, commit)
				drop(name, commit)
			}
			var want []string
			for line := range strings.Lines(before) {
				_, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
				if _, ok := gone[strings.TrimSuffix(strings.TrimPrefix(ref, "refs/tags/"), "^{}")]; !ok {
					want = append(want, line)
				}
			}
			if diff := cmp.Diff(strings.Join(want, ""), git("show-ref", "--dereference", "--head")); diff != "" {
				t.Errorf("what git sees (-want +got)\n%s", diff)
			}
			git("fsck", "--strict")
			for _, lock := range []string{"packed-refs.lock", "refs/tags/m.lock"} {
				if _, err := os.Lstat(filepath.Join(dir, ".git", lock)); err == nil {
					t.Errorf("%s is still there", lock)
				}
			}
		})
	}
}

// A git that removes a tag locks its file first, and then the packed references. Whoever takes them the other way round waits for a git
// that waits for it.
func TestDropTagLocksAsGitDoes(t *testing.T) {
	remote := gittest.NewRepo(t, gittest.Options{})
	commit := remote.Seed(t, "main", map[string]string{"a": "1"})
	dir := t.TempDir()
	gittest.Git(t, dir, "clone", "-q", "-b", "main", remote.Dir, ".")
	gittest.Git(t, dir, "tag", "v1", commit)
	for _, name := range []string{"packed-refs", "refs/tags/v1"} {
		if err := os.WriteFile(filepath.Join(dir, ".git", filepath.FromSlash(name)+".lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.DropTag(t.Context(), "v1", commit); err == nil || !strings.Contains(err.Error(), filepath.Join("tags", "v1")) {
		t.Errorf("with both locked by git, it waits for %v; want the tag's file", err)
	}
}
