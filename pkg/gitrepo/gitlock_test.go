package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// If git holds the lock of the branch or of HEAD, a commit fails before it writes anything, and the error names the lock file. A lock file
// that a killed fleetctl has left does not block a commit.
func TestCommitUnderGitsLocks(t *testing.T) {
	for _, locked := range []string{"refs/heads/main", "HEAD"} {
		t.Run(locked, func(t *testing.T) {
			t.Parallel()
			repo := initLocal(t)
			before, _ := commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1\n")})
			lock := filepath.Join(repo.Dir(), ".git", filepath.FromSlash(locked)+".lock")
			write(t, repo.Dir(), ".git/"+locked+".lock", "")
			change := gitrepo.Change{Path: "a", Content: []byte("2\n")}
			_, _, err := repo.Commit(t.Context(), []gitrepo.Change{change}, "x", author)
			if !errors.Is(err, gitrepo.ErrBusy) || !strings.Contains(diag.Hint(err), lock) {
				t.Errorf("got %v, hint %q", err, diag.Hint(err))
			}
			if head, err := repo.Head(); err != nil || head != before || status(t, repo.Dir()) != "" || read(t, repo.Dir(), "a") != "1\n" {
				t.Errorf("it is at %s, not at %s: %v, %q", head, before, err, status(t, repo.Dir()))
			}
			if content, err := os.ReadFile(lock); err != nil || len(content) > 0 {
				t.Errorf("the lock of git: %q, %v", content, err)
			}
			write(t, repo.Dir(), ".git/"+locked+".lock", "fleetctl\n")
			if _, made := commit(t, repo, change); !made {
				t.Error("no commit")
			}
			if _, err := os.Lstat(lock); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a lock is left: %v", err)
			}
			gittest.Git(t, repo.Dir(), "pack-refs", "--all")
			whole(t, repo.Dir())
		})
	}
}

// git and fleetctl can commit at the same moment, and no commit is lost.
func TestCommitsBesideGit(t *testing.T) {
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("0\n")})
	const each = 40
	theirs := make(chan int)
	go func() {
		made := 0
		for range each {
			head, err := try(t, repo.Dir(), "rev-parse", "main")
			if err != nil {
				continue
			}
			head = strings.TrimSpace(head)
			next, err := try(t, repo.Dir(), "commit-tree", "-p", head, "-m", "theirs", head+"^{tree}")
			if err != nil {
				continue
			}
			if _, err := try(t, repo.Dir(), "update-ref", "refs/heads/main", strings.TrimSpace(next), head); err == nil {
				made++
			}
			_, _ = try(t, repo.Dir(), "pack-refs", "--all") // which fails while the branch is locked
		}
		theirs <- made
	}()
	ours := 0
	for i := range each {
		content := []byte(strconv.Itoa(i+1) + "\n")
		_, made, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "a", Content: content}}, "ours", author)
		switch {
		case errors.Is(err, gitrepo.ErrMoved), errors.Is(err, gitrepo.ErrBusy):
		case err != nil:
			t.Fatal(err)
		case made:
			ours++
		}
	}
	want := 1 + ours + <-theirs
	if got := strings.Count(gittest.Git(t, repo.Dir(), "log", "--format=%H", "main"), "\n"); got != want {
		t.Errorf("%d commits are in the branch, and %d were made", got, want)
	}
	if status(t, repo.Dir()) != "" {
		t.Errorf("status %q", status(t, repo.Dir()))
	}
	whole(t, repo.Dir())
}

// fleetctl also takes git's locks for writes of remote-tracking branches and of the configuration.
func TestGitsLocksOfTheRest(t *testing.T) {
	t.Parallel()
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1\n"})
	repo := clone(t, server.URL, tokenAuth(server))
	write(t, repo.Dir(), ".git/refs/remotes/origin/main.lock", "")
	if err := repo.CatchUp(t.Context(), tokenAuth(server)); !errors.Is(err, gitrepo.ErrBusy) {
		t.Errorf("the branch of the remote is locked: %v", err)
	}
	local := initLocal(t)
	write(t, local.Dir(), ".git/config.lock", "")
	if _, err := local.EnsureRemote(server.URL); !errors.Is(err, gitrepo.ErrBusy) {
		t.Errorf("the configuration is locked: %v", err)
	}
}

// A branch that is a symbolic reference to another branch is not moved.
func TestBranchIsANameForAnother(t *testing.T) {
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1\n")})
	gittest.Git(t, repo.Dir(), "branch", "real")
	gittest.Git(t, repo.Dir(), "symbolic-ref", "refs/heads/main", "refs/heads/real")
	_, _, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "a", Content: []byte("2\n")}}, "x", author)
	if err == nil || !strings.Contains(err.Error(), "is a name for another branch, real") ||
		diag.Hint(err) != "check out that branch: git switch real" {
		t.Errorf("got %v, hint %q", err, diag.Hint(err))
	}
}
