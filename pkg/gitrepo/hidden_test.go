package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// A file that git was told not to look at can be edited like any other. The commit has only the change. Other differences of the file stay
// on disk, and git still does not look at the file.
func TestEditOfWhatGitDoesNotLookAt(t *testing.T) {
	for flag, letter := range map[string]string{"--skip-worktree": "S ", "--assume-unchanged": "h "} {
		for name, mine := range map[string]string{"as committed": body, "changed": strings.Replace(body, "5: five", "5: mine", 1)} {
			t.Run(flag+" "+name, func(t *testing.T) {
				sandbox(t, tess)
				dir := setUp{after: all(git("update-index", flag, "top/x.yaml"), file("top/x.yaml", mine))}.make(t)
				repo, err := gitrepo.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				change := gitrepo.Change{Path: "top/x.yaml", Content: []byte(strings.Replace(body, "1: one", "1: ONE", 1))}
				if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{change}, "edit", gitrepo.Author{}); err != nil {
					t.Fatal(err)
				}
				if out := run(t, dir, "show", "--format=", "--numstat"); out != "1\t1\ttop/x.yaml\n" {
					t.Errorf("the commit: %q", out)
				}
				if got, want := read(t, dir, "top/x.yaml"), strings.Replace(mine, "1: one", "1: ONE", 1); got != want {
					t.Errorf("on disk %q, want %q", got, want)
				}
				if out := run(t, dir, "ls-files", "-v", "top/x.yaml"); out != letter+"top/x.yaml\n" {
					t.Errorf("git knows it as %q", out)
				}
				if out := run(t, dir, "status", "--porcelain") + run(t, dir, "diff", "--cached"); out != "" {
					t.Errorf("git finds %q", out)
				}
				whole(t, dir)
			})
		}
	}
}

// A change starts from the last commit. This also holds for edits that git does not see, because it was told not to look at the file or
// because a file system monitor reports no change.
func TestCopyHasOnlyWhatIsCommitted(t *testing.T) {
	changed := strings.Replace(body, "5: five", "5: mine", 1)
	for name, hide := range map[string]func(t *testing.T, dir string){
		"skipped": all(git("update-index", "--skip-worktree", "top/x.yaml"), file("top/x.yaml", changed)),
		"assumed": all(git("update-index", "--assume-unchanged", "top/x.yaml"), file("top/x.yaml", changed)),
		"monitored": all(git("config", "core.fsmonitor", "true #"), git("status"), git("update-index", "--fsmonitor-valid", "top/x.yaml"),
			file("top/x.yaml", changed)),
	} {
		for _, without := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, without git: %t", name, without), func(t *testing.T) {
				sandbox(t, tess)
				dir := setUp{after: hide}.make(t)
				if without {
					t.Setenv("PATH", t.TempDir())
				}
				repo, err := gitrepo.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				dirty, err := repo.Dirty(t.Context())
				if err != nil || !slices.Equal(dirty, []string{"top/x.yaml"}) {
					t.Errorf("dirty %q, error %v", dirty, err)
				}
				root, remove, err := repo.Copy(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := read(t, root, "top/x.yaml"); got != body {
					t.Errorf("the copy has %q", got)
				}
				if err := remove(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A sparse checkout lacks files that are committed, and is not dirty for that.
func TestCopyOfASparseCheckout(t *testing.T) {
	sandbox(t, tess)
	dir := setUp{after: git("sparse-checkout", "set", "--no-cone", "a")}.make(t)
	if _, err := os.Lstat(filepath.Join(dir, "top/x.yaml")); err == nil {
		t.Fatal("the file is there")
	}
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if dirty, err := repo.Dirty(t.Context()); err != nil || len(dirty) > 0 {
		t.Errorf("dirty %q, error %v", dirty, err)
	}
	root, remove, err := repo.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, "top/x.yaml"); got != body {
		t.Errorf("the copy has %q", got)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
}

// A folder with a .git is not a working tree if the repository's working tree is elsewhere. git then does not know the files in the folder.
func TestWorkingTreeElsewhere(t *testing.T) {
	for name, bare := range map[string]bool{"core.worktree": false, "bare": true} {
		t.Run(name, func(t *testing.T) {
			sandbox(t, tess)
			dir, tree := setUp{}.make(t), t.TempDir()
			if bare {
				run(t, dir, "config", "core.bare", "true")
			} else {
				run(t, dir, "config", "core.worktree", tree)
			}
			repo, err := gitrepo.Open(dir)
			if err == nil {
				_, _, err = repo.Commit(t.Context(), []gitrepo.Change{{Path: "top/x.yaml", Content: []byte("1: ONE\n")}}, "edit", gitrepo.Author{})
			}
			if !errors.Is(err, gitrepo.ErrNoWorkTree) || diag.Hint(err) == "" {
				t.Errorf("error %v", err)
			}
			if got := read(t, dir, "top/x.yaml"); got != body {
				t.Errorf("on disk %q", got)
			}
			if out := run(t, dir, "--git-dir", filepath.Join(dir, ".git"), "log", "--format=%s"); out != "first\n" {
				t.Errorf("commits %q", out)
			}
		})
	}
}

// An edit of a symbolic link, or of a file below a link, is refused, so that the link does not silently become a file.
func TestEditOfALink(t *testing.T) {
	for _, path := range []string{"a/link", "folder/x.yaml"} {
		t.Run(path, func(t *testing.T) {
			sandbox(t, tess)
			dir := setUp{before: all(link("a/link", "../top/x.yaml"), link("folder", "top"))}.make(t)
			repo, err := gitrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = repo.Commit(t.Context(), []gitrepo.Change{{Path: path, Content: []byte(strings.Replace(body, "3: 3", "3: three", 1))}},
				"edit", gitrepo.Author{})
			if !errors.Is(err, gitrepo.ErrPath) || diag.Hint(err) == "" && path == "a/link" {
				t.Errorf("error %v", err)
			}
			for _, name := range []string{"a/link", "folder"} {
				if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
					t.Errorf("%s is no link any more", name)
				}
			}
			if out := run(t, dir, "ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"); !strings.Contains(out,
				"120000 a/link\n120000 folder\n") {
				t.Errorf("the commit has\n%s", out)
			}
			if out := run(t, dir, "status", "--porcelain"); out != "" {
				t.Errorf("refused, and left %q", out)
			}
			whole(t, dir)
		})
	}
}

// A deadline that ends git is not a refusal of git: nobody should trust the owner of the folder because of it.
func TestDeadlineIsNoRefusal(t *testing.T) {
	sandbox(t, tess)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for name, dir := range map[string]string{"repository": setUp{}.make(t), "no repository": t.TempDir()} {
		err := gitrepo.CheckAuthor(ctx, dir)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, gitrepo.ErrUntrusted) || diag.Hint(err) != "" {
			t.Errorf("%s: %v, hint %q", name, err, diag.Hint(err))
		}
	}
}
