package gitrepo_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

var author = gitrepo.Author{Name: "Ann", Email: "ann@example.com"}

func initLocal(t *testing.T) *gitrepo.Repo {
	t.Helper()
	repo, err := gitrepo.InitLocal(t.TempDir(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func commit(t *testing.T, repo *gitrepo.Repo, changes ...gitrepo.Change) (string, bool) {
	t.Helper()
	hash, made, err := repo.Commit(t.Context(), changes, "change", author)
	if err != nil {
		t.Fatal(err)
	}
	return hash, made
}

func status(t *testing.T, dir string) string {
	t.Helper()
	return gittest.Git(t, dir, "status", "--porcelain")
}

// whole fails the test if git finds anything wrong, or if something of ours is left behind.
func whole(t *testing.T, dir string) {
	t.Helper()
	gittest.Git(t, dir, "fsck", "--strict", "--no-dangling")
	for _, pattern := range []string{
		".git-fleetctl-*", ".fleetctl-*", "*/.fleetctl-*", ".git/index.lock", ".git/index.fleetctl*",
		".git/fleetctl.lock.index",
	} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) > 0 {
			t.Errorf("left behind: %v %v", found, err)
		}
	}
}

func TestCommit(t *testing.T) {
	repo := initLocal(t)
	if head, err := repo.Head(); err != nil || head != "" {
		t.Fatalf("Head of an empty repository: %q, %v", head, err)
	}
	if _, made := commit(t, repo); made {
		t.Error("a commit without changes")
	}
	bytes := "one\r\ntwo\n\x00\xff"
	first, made := commit(t, repo,
		gitrepo.Change{Path: "fleet.yaml", Content: []byte(bytes)},
		gitrepo.Change{Path: "a/b/run.sh", Content: []byte("#!/bin/sh\n"), Executable: true},
		gitrepo.Change{Path: "a/gone", Content: []byte("x")})
	if !made || read(t, repo.Dir(), "fleet.yaml") != bytes {
		t.Errorf("first commit: made %v, content %q", made, read(t, repo.Dir(), "fleet.yaml"))
	}
	if out := gittest.Git(t, repo.Dir(), "cat-file", "blob", "HEAD:fleet.yaml"); out != bytes {
		t.Errorf("committed %q", out)
	}
	if out := gittest.Git(t, repo.Dir(), "log", "--format=%an <%ae> %s %D"); out != "Ann <ann@example.com> change HEAD -> main\n" {
		t.Errorf("log %q", out)
	}
	if again, made := commit(t, repo, gitrepo.Change{Path: "fleet.yaml", Content: []byte(bytes)}); made || again != first {
		t.Errorf("the same again: %s, %v", again, made)
	}
	commit(t, repo, gitrepo.Change{Path: "a/gone", Delete: true}, gitrepo.Change{Path: "never/there", Delete: true},
		gitrepo.Change{Path: "a/b/run.sh", Content: []byte("#!/bin/sh\ntrue\n")})
	if out := gittest.Git(t, repo.Dir(), "ls-tree", "-r", "--format=%(objectmode) %(path)",
		"HEAD"); out != "100755 a/b/run.sh\n100644 fleet.yaml\n" {
		t.Errorf("tree %q", out)
	}
	if _, err := os.Stat(filepath.Join(repo.Dir(), "a", "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a/gone is still there: %v", err)
	}
	if out := status(t, repo.Dir()); out != "" {
		t.Errorf("status %q", out)
	}
	if dirty, err := repo.Dirty(t.Context()); err != nil || len(dirty) > 0 {
		t.Errorf("dirty: %v, %v", dirty, err)
	}
	whole(t, repo.Dir())
}

func TestCommitLeavesTheRestAlone(t *testing.T) {
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "ours", Content: []byte("1")}, gitrepo.Change{Path: "theirs", Content: []byte("1")},
		gitrepo.Change{Path: "staged", Content: []byte("1")})
	write(t, repo.Dir(), "theirs", "edited")
	write(t, repo.Dir(), "staged", "edited")
	write(t, repo.Dir(), "new", "untracked")
	write(t, repo.Dir(), "added", "staged, new")
	gittest.Git(t, repo.Dir(), "add", "staged", "added")
	before := status(t, repo.Dir())
	commit(t, repo, gitrepo.Change{Path: "ours", Content: []byte("2")})
	if out := gittest.Git(t, repo.Dir(), "show", "--name-only", "--format=", "HEAD"); out != "ours\n" {
		t.Errorf("the commit has %q", out)
	}
	if after := status(t, repo.Dir()); after != before {
		t.Errorf("status %q, was %q", after, before)
	}
	dirty, err := repo.Dirty(t.Context())
	if diff := cmp.Diff([]string{"added", "new", "staged", "theirs"}, dirty); diff != "" || err != nil {
		t.Errorf("Dirty: %v %s", err, diff)
	}
	whole(t, repo.Dir())
}

// CRLF in the working tree and core.autocrlf are where go-git's own Add goes wrong (#691).
func TestCommitAutoCRLF(t *testing.T) {
	repo := initLocal(t)
	gittest.Git(t, repo.Dir(), "config", "core.autocrlf", "true")
	commit(t, repo, gitrepo.Change{Path: "lf", Content: []byte("a\nb\n")})
	if out := gittest.Git(t, repo.Dir(), "cat-file", "blob", "HEAD:lf"); out != "a\nb\n" || read(t, repo.Dir(), "lf") != out {
		t.Errorf("committed %q, on disk %q", out, read(t, repo.Dir(), "lf"))
	}
	if err := os.Remove(filepath.Join(repo.Dir(), "lf")); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, repo.Dir(), "checkout", "lf")
	if read(t, repo.Dir(), "lf") != "a\r\nb\r\n" {
		t.Fatal("git did not convert; the rest proves nothing")
	}
	if dirty, err := repo.Dirty(t.Context()); err != nil || len(dirty) > 0 {
		t.Errorf("dirty with converted line ends: %v, %v", dirty, err)
	}
}

func TestCommitPaths(t *testing.T) {
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "file", Content: []byte("1")}, gitrepo.Change{Path: "dir/file", Content: []byte("1")})
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(repo.Dir(), "link")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{
		"", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", ".git/config", "a/.GIT/x", ".git./x", "git~1/x",
		".g\u200cit/config", "a/.GI\u202eT", "\ufeff.git\u200d ./x", "a\\b", "a\x00b", "file/x", "dir",
	} {
		if _, made, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: p, Content: []byte("x")}}, "bad",
			author); !errors.Is(err, gitrepo.ErrPath) || made {
			t.Errorf("%q: made %v, error %v; want ErrPath", p, made, err)
		}
	}
	if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "link/x", Content: []byte("x")}}, "bad", author); err == nil {
		t.Error("written through a link that leads out")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
	whole(t, repo.Dir())
}

func TestCommitFileBecomesFolder(t *testing.T) {
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("file")})
	commit(t, repo, gitrepo.Change{Path: "a", Delete: true}, gitrepo.Change{Path: "a/b", Content: []byte("folder")})
	commit(t, repo, gitrepo.Change{Path: "a/b", Delete: true}, gitrepo.Change{Path: "a", Content: []byte("file")})
	if read(t, repo.Dir(), "a") != "file" || status(t, repo.Dir()) != "" {
		t.Errorf("a is %q, status %q", read(t, repo.Dir(), "a"), status(t, repo.Dir()))
	}
	commit(t, repo, gitrepo.Change{Path: "a", Delete: true})
	if out := gittest.Git(t, repo.Dir(), "ls-tree", "HEAD"); out != "" {
		t.Errorf("tree %q", out)
	}
}

func TestCommitBusy(t *testing.T) {
	repo := initLocal(t)
	change := gitrepo.Change{Path: "a", Content: []byte("1")}
	write(t, repo.Dir(), ".git/index.lock", "")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := repo.Commit(ctx, []gitrepo.Change{change}, "x", author); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("git holds the index: %v", err)
	}
	if read(t, repo.Dir(), ".git/index.lock") != "" {
		t.Error("the lock of git has been changed")
	}
	// A lock that our own killed process left is no obstacle.
	write(t, repo.Dir(), ".git/index.lock", "fleetctl\n")
	if _, made := commit(t, repo, change); !made {
		t.Error("no commit")
	}
	write(t, repo.Dir(), ".git/MERGE_HEAD", strings.Repeat("0", 40))
	if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "b"}}, "x", author); !errors.Is(err, gitrepo.ErrBusy) {
		t.Errorf("a merge is under way: %v", err)
	}
	if err := os.Remove(filepath.Join(repo.Dir(), ".git", "MERGE_HEAD")); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, repo.Dir(), "checkout", "--quiet", "--detach")
	if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "b"}}, "x", author); !errors.Is(err, gitrepo.ErrDetached) {
		t.Errorf("no branch: %v", err)
	}
	whole(t, repo.Dir())
}

// What a kill between the steps leaves, the same call completes: files written but not committed, then indexed as well.
func TestCommitAgainAfterKill(t *testing.T) {
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1")})
	changes := []gitrepo.Change{{Path: "a", Content: []byte("2")}, {Path: "b", Content: []byte("2")}}
	for _, add := range []bool{false, true} {
		write(t, repo.Dir(), "a", "2")
		write(t, repo.Dir(), "b", "2")
		if add {
			gittest.Git(t, repo.Dir(), "add", "a", "b")
		}
		if _, made := commit(t, repo, changes...); !made || status(t, repo.Dir()) != "" {
			t.Errorf("added %v: made %v, status %q", add, made, status(t, repo.Dir()))
		}
		gittest.Git(t, repo.Dir(), "reset", "--quiet", "--hard", "HEAD~1")
	}
	whole(t, repo.Dir())
}

func TestAuthor(t *testing.T) {
	repo := initLocal(t)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	if a, err := repo.Author(); !errors.Is(err, gitrepo.ErrNoAuthor) || !strings.Contains(diag.Hint(err), "git config --global user.name") {
		t.Errorf("Author without configuration: %+v, %v, hint %q", a, err, diag.Hint(err))
	}
	t.Setenv("CI", "true")
	if a, err := repo.Author(); err != nil || a.Name == "" || a.Email == "" {
		t.Errorf("Author without configuration, on a runner: %+v, %v", a, err)
	}
	t.Setenv("CI", "")
	gittest.Git(t, repo.Dir(), "config", "user.name", "Bea")
	gittest.Git(t, repo.Dir(), "config", "user.email", "bea@example.com")
	if a, err := repo.Author(); err != nil || a != (gitrepo.Author{Name: "Bea", Email: "bea@example.com"}) {
		t.Errorf("Author: %+v, %v", a, err)
	}
}

func TestInitLocal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	write(t, dir, "fleet.yaml", "mine")
	if _, err := gitrepo.Open(dir); !errors.Is(err, gitrepo.ErrNotARepository) {
		t.Errorf("Open: %v", err)
	}
	write(t, dir, ".git-fleetctl-123/HEAD", "a killed run left this")
	for range 2 {
		repo, err := gitrepo.InitLocal(dir, "trunk")
		if err != nil {
			t.Fatal(err)
		}
		if branch, err := repo.Branch(); err != nil || branch != "trunk" {
			t.Errorf("Branch: %q, %v", branch, err)
		}
		if url, branch, err := repo.Remote(); err != nil || url != "" || branch != "trunk" {
			t.Errorf("Remote: %q, %q, %v", url, branch, err)
		}
	}
	if status(t, dir) != "?? fleet.yaml\n" {
		t.Errorf("status %q", status(t, dir))
	}
	whole(t, dir)
}

// A linked working tree has its index elsewhere.
func TestLinkedWorktree(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("paths in .git files are the same there")
	}
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1")})
	dir := filepath.Join(t.TempDir(), "linked")
	gittest.Git(t, repo.Dir(), "worktree", "add", "--quiet", "-b", "side", dir)
	linked, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, linked, gitrepo.Change{Path: "b", Content: []byte("2")})
	if status(t, dir) != "" || status(t, repo.Dir()) != "" {
		t.Errorf("status %q and %q", status(t, dir), status(t, repo.Dir()))
	}
	if out := gittest.Git(t, dir, "log", "--format=%D", "-1"); out != "HEAD -> side\n" {
		t.Errorf("log %q", out)
	}
}
