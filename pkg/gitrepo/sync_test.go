package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

func clone(t *testing.T, url string, auth gitrepo.Auth) *gitrepo.Repo {
	t.Helper()
	repo, err := gitrepo.Clone(t.Context(), url, auth, "main", filepath.Join(t.TempDir(), "clone"))
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func put(changes ...gitrepo.Change) gitrepo.Intent {
	return func(string) ([]gitrepo.Change, error) { return changes, nil }
}

func TestCloneCommitPush(t *testing.T) {
	https := gittest.NewHTTPS(t, gittest.Options{})
	ssh := gittest.NewSSH(t, gittest.Options{})
	for name, c := range map[string]struct {
		*gittest.Repo
		url  string
		auth gitrepo.Auth
	}{
		"https": {https.Repo, https.URL, tokenAuth(https)},
		"ssh":   {ssh.Repo, ssh.URL, sshAuth(t, ssh, false)},
	} {
		t.Run(name, func(t *testing.T) {
			empty := clone(t, c.url, c.auth)
			if head, err := empty.Head(); err != nil || head != "" {
				t.Errorf("Head of an empty clone: %q, %v", head, err)
			}
			commit(t, empty, gitrepo.Change{Path: "x/first", Content: []byte("1\r\n")},
				gitrepo.Change{Path: "run", Content: []byte("1"), Executable: true})
			if n, err := empty.CommitsAhead(t.Context()); err != nil || n != 1 {
				t.Errorf("CommitsAhead: %d, %v", n, err)
			}
			if pushed, err := empty.Push(t.Context(), c.auth); err != nil || !pushed {
				t.Fatalf("Push: %v, %v", pushed, err)
			}
			if pushed, err := empty.Push(t.Context(), c.auth); err != nil || pushed {
				t.Errorf("Push again: %v, %v", pushed, err)
			}
			for i := range 3 {
				c.Seed(t, "main", map[string]string{"seeded": fmt.Sprint(i)})
			}
			second := clone(t, c.url, c.auth)
			if out := gittest.Git(t, second.Dir(), "rev-list", "--count", "HEAD"); out != "1\n" {
				t.Errorf("the clone has %s commits, want 1: it is not shallow", out)
			}
			if read(t, second.Dir(), "x/first") != "1\r\n" || status(t, second.Dir()) != "" {
				t.Errorf("clone has %q, status %q", read(t, second.Dir(), "x/first"), status(t, second.Dir()))
			}
			commit(t, second, gitrepo.Change{Path: "x/second", Content: []byte("2")})
			if n, err := second.CommitsAhead(t.Context()); err != nil || n != 1 {
				t.Errorf("CommitsAhead of a shallow clone: %d, %v", n, err)
			}
			if pushed, err := second.Push(t.Context(), c.auth); err != nil || !pushed {
				t.Fatalf("Push from a shallow clone: %v, %v", pushed, err)
			}
			if n, err := second.CommitsAhead(t.Context()); err != nil || n != 0 {
				t.Errorf("CommitsAhead after the push: %d, %v", n, err)
			}
			gittest.Git(t, c.Dir, "fsck", "--strict")
			commit(t, empty, gitrepo.Change{Path: "late", Content: []byte("3")})
			if _, err := empty.Push(t.Context(), c.auth); !errors.Is(err, gitrepo.ErrNonFastForward) {
				t.Errorf("Push of somebody who is behind: %v", err)
			}
			if head, err := second.Head(); err != nil || head != c.Head(t, "main") {
				t.Errorf("remote is at %s, want %s (%v)", c.Head(t, "main"), head, err)
			}
			whole(t, second.Dir())
			whole(t, empty.Dir())
		})
	}
}

func TestCloneIntoFolderWithFiles(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	s.Seed(t, "main", map[string]string{"fleet.yaml": "theirs", "same": "same", "sub/file": "1"})
	dir := t.TempDir()
	write(t, dir, "fleet.yaml", "mine")
	write(t, dir, "same", "same")
	write(t, dir, "untracked", "mine")
	var dirty *gitrepo.DirtyError
	_, err := gitrepo.Clone(t.Context(), s.URL, tokenAuth(s), "main", dir)
	if !errors.As(err, &dirty) || len(dirty.Paths) != 1 || dirty.Paths[0] != "fleet.yaml" {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); !errors.Is(err, os.ErrNotExist) || read(t, dir, "fleet.yaml") != "mine" {
		t.Errorf("something was made: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "fleet.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := gitrepo.Clone(t.Context(), s.URL, tokenAuth(s), "main", dir); err != nil {
		t.Fatal(err)
	}
	if out := status(t, dir); out != "?? untracked\n" {
		t.Errorf("status %q", out)
	}
	if _, err := gitrepo.Clone(t.Context(), s.URL, tokenAuth(s), "main", dir); err == nil {
		t.Error("cloned over a repository")
	}
	whole(t, dir)
}

func TestCloneLeavesNothing(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	dir := t.TempDir()
	if _, err := gitrepo.Clone(t.Context(), s.URL, gitrepo.Auth{CA: s.CA}, "main", dir); !errors.Is(err, gitrepo.ErrAuth) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gitrepo.Clone(ctx, s.URL, tokenAuth(s), "main", dir); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestSync(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	repo := clone(t, s.URL, tokenAuth(s))
	sync := func(intent gitrepo.Intent) *gitrepo.Synced {
		t.Helper()
		done, err := repo.Sync(t.Context(), tokenAuth(s), intent, "intent", author)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := sync(put()); done.Made || done.Pushed {
		t.Errorf("nothing into an empty remote: %+v", done)
	}
	done := sync(put(gitrepo.Change{Path: "a", Content: []byte("1")}))
	if !done.Made || !done.Pushed || s.Head(t, "main") != done.Commit {
		t.Errorf("into an empty remote: %+v", done)
	}
	if done = sync(put(gitrepo.Change{Path: "a", Content: []byte("1")})); done.Made || done.Pushed {
		t.Errorf("again: %+v", done)
	}
	// Somebody else pushes; the intent sees it, and dirty files elsewhere stay.
	s.Seed(t, "main", map[string]string{"theirs": "1", "deep/er": "1"})
	write(t, repo.Dir(), "mine", "not for Git")
	done = sync(func(root string) ([]gitrepo.Change, error) {
		return []gitrepo.Change{{Path: "b", Content: []byte("after " + read(t, root, "theirs"))}}, nil
	})
	if !done.Pushed || s.File(t, "main", "b") != "after 1" || status(t, repo.Dir()) != "?? mine\n" {
		t.Errorf("after somebody else: %+v, status %q", done, status(t, repo.Dir()))
	}
	// A commit of the user's that is not pushed yet goes along.
	commit(t, repo, gitrepo.Change{Path: "c", Content: []byte("1")})
	if done = sync(put()); done.Made || !done.Pushed || s.File(t, "main", "c") != "1" {
		t.Errorf("with a local commit: %+v", done)
	}
	// Killed after the push, before the local branch moved.
	gittest.Git(t, repo.Dir(), "reset", "--quiet", "--hard", "HEAD~1")
	if done = sync(put(gitrepo.Change{Path: "c", Content: []byte("1")})); done.Made || done.Pushed || read(t, repo.Dir(), "c") != "1" {
		t.Errorf("after a kill: %+v", done)
	}
	// An update that would overwrite an edit.
	s.Seed(t, "main", map[string]string{"a": "2"})
	write(t, repo.Dir(), "a", "edited")
	var dirty *gitrepo.DirtyError
	if _, err := repo.Sync(t.Context(), tokenAuth(s), put(), "intent", author); !errors.As(err, &dirty) ||
		read(t, repo.Dir(), "a") != "edited" {
		t.Errorf("over an edit: %v", err)
	}
	gittest.Git(t, repo.Dir(), "checkout", "--quiet", "a")
	// Both sides have moved.
	commit(t, repo, gitrepo.Change{Path: "d", Content: []byte("1")})
	if _, err := repo.Sync(t.Context(), tokenAuth(s), put(), "intent", author); !errors.Is(err, gitrepo.ErrDiverged) {
		t.Errorf("diverged: %v", err)
	}
	whole(t, repo.Dir())
	gittest.Git(t, s.Dir, "fsck", "--strict")
}

func TestIncludes(t *testing.T) {
	remote := gittest.NewHTTPS(t, gittest.Options{})
	auth := tokenAuth(remote)
	remote.Seed(t, "main", map[string]string{"a": "1"})
	repo := clone(t, remote.URL, auth)
	older, err := repo.Head()
	if err != nil {
		t.Fatal(err)
	}
	remote.Seed(t, "main", map[string]string{"a": "2"})
	newer := strings.TrimSpace(gittest.Git(t, remote.Dir, "rev-parse", "main"))
	remote.Seed(t, "other", map[string]string{"a": "3"})
	unrelated := strings.TrimSpace(gittest.Git(t, remote.Dir, "rev-parse", "other"))
	for _, c := range []struct {
		what, newer, older string
		want               bool
	}{
		{"the same commit", older, older, true},
		{"a commit that somebody pushed meanwhile", newer, older, true},
		{"the other way round", older, newer, false},
		{"a commit that is not on the branch", strings.Repeat("ab", 20), older, false},
		{"a commit of another branch", unrelated, newer, false},
	} {
		if got, err := repo.Includes(t.Context(), auth, c.newer, c.older); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.what, got, err, c.want)
		}
	}
	if head, err := repo.Head(); err != nil || head != older {
		t.Errorf("Head is %s, %v: looking must not move it from %s", head, err, older)
	}
}

func TestSyncProtectedBranch(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{Protected: []string{"main"}})
	s.Seed(t, "main", map[string]string{"a": "1"})
	repo := clone(t, s.URL, tokenAuth(s))
	before, err := repo.Head()
	if err != nil {
		t.Fatal(err)
	}
	_, err = repo.Sync(t.Context(), tokenAuth(s), put(gitrepo.Change{Path: "b", Content: []byte("1")}), "intent", author)
	if !errors.Is(err, gitrepo.ErrProtectedBranch) || !strings.Contains(err.Error(), "not allowed to push to protected branches") {
		t.Errorf("error %v", err)
	}
	if after, err := repo.Head(); err != nil || after != before || status(t, repo.Dir()) != "" {
		t.Errorf("a refused push left something: %s, %v, %q", after, err, status(t, repo.Dir()))
	}
}

// Several pushers at once: everyone's intent is in the end in the branch, in one line of history.
func TestSyncConcurrently(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	s.Seed(t, "main", map[string]string{"a": "1"})
	const pushers = 3
	repos := make([]*gitrepo.Repo, pushers)
	for i := range repos {
		repos[i] = clone(t, s.URL, tokenAuth(s))
	}
	var wg sync.WaitGroup
	attempts := make([]int, pushers)
	for i, repo := range repos {
		wg.Go(func() {
			name := fmt.Sprintf("from-%d", i)
			done, err := repo.Sync(t.Context(), tokenAuth(s), put(gitrepo.Change{Path: name, Content: []byte(name)}), name, author)
			if err != nil {
				t.Errorf("pusher %d: %v", i, err)
				return
			}
			attempts[i] = done.Attempts
		})
	}
	wg.Wait()
	for i := range pushers {
		name := fmt.Sprintf("from-%d", i)
		if s.File(t, "main", name) != name {
			t.Errorf("%s is missing", name)
		}
	}
	if out := gittest.Git(t, s.Dir, "rev-list", "--count", "main"); out != fmt.Sprintf("%d\n", pushers+1) {
		t.Errorf("%s commits", out)
	}
	if attempts[0]+attempts[1]+attempts[2] == pushers {
		t.Log("nobody collided this time")
	}
}

// Somebody pushes exactly between our look and our push, again and again: the intent is applied anew, and in the end given up.
func TestSyncLosesRaces(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	s.Seed(t, "main", map[string]string{"n": "0"})
	repo := clone(t, s.URL, tokenAuth(s))
	calls := 0
	intent := func(limit int) gitrepo.Intent {
		calls = 0
		return func(root string) ([]gitrepo.Change, error) {
			calls++
			seen := read(t, root, "n")
			if calls <= limit {
				s.Seed(t, "main", map[string]string{"n": fmt.Sprintf("%d-%d", limit, calls)})
			}
			return []gitrepo.Change{{Path: "result", Content: fmt.Appendf(nil, "%d saw %s", limit, seen)}}, nil
		}
	}
	done, err := repo.Sync(t.Context(), tokenAuth(s), intent(2), "intent", author)
	if err != nil || done.Attempts != 3 || s.File(t, "main", "result") != "2 saw 2-2" {
		t.Errorf("two lost races: %+v, %v", done, err)
	}
	if _, err := repo.Sync(t.Context(), tokenAuth(s), intent(100), "intent",
		author); !errors.Is(err, gitrepo.ErrNonFastForward) || calls > 10 {
		t.Errorf("lost all: %v after %d calls", err, calls)
	}
	if status(t, repo.Dir()) != "" {
		t.Errorf("status %q", status(t, repo.Dir()))
	}
}

func TestEnsureRemote(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	repo := initLocal(t)
	commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1")})
	if _, err := repo.Sync(t.Context(), tokenAuth(s), put(), "x", author); !errors.Is(err, gitrepo.ErrURL) {
		t.Errorf("no remote: %v", err)
	}
	for i, want := range []bool{true, false} {
		if made, err := repo.EnsureRemote(s.URL); err != nil || made != want {
			t.Errorf("call %d: %v, %v", i, made, err)
		}
	}
	if _, err := repo.EnsureRemote("https://example.com/other.git"); err == nil {
		t.Error("another remote was accepted")
	}
	if done, err := repo.Sync(t.Context(), tokenAuth(s), put(), "x", author); err != nil || !done.Pushed || s.File(t, "main", "a") != "1" {
		t.Errorf("first push: %+v, %v", done, err)
	}
	if url, branch, err := repo.Remote(); err != nil || url != s.URL || branch != "main" {
		t.Errorf("Remote: %q, %q, %v", url, branch, err)
	}
}

// Who goes back by git's log of HEAD finds each move there: commits of a push, and what was fetched before it.
func TestMovesAreLogged(t *testing.T) {
	sandbox(t, tess)
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1\n"})
	repo := clone(t, server.URL, tokenAuth(server))
	first := run(t, repo.Dir(), "rev-parse", "HEAD")
	server.Seed(t, "main", map[string]string{"a": "2\n"})
	if _, err := repo.Sync(t.Context(), tokenAuth(server), put(gitrepo.Change{Path: "b", Content: []byte("1")}), "add b\n",
		gitrepo.Author{}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, repo.Dir(), "log", "--walk-reflogs", "-2", "--format=%gs"); got != "commit: add b\npull: Fast-forward\n" {
		t.Errorf("the log says %q", got)
	}
	if got := run(t, repo.Dir(), "rev-parse", "HEAD@{1}"); got != run(t, repo.Dir(), "rev-parse", "HEAD~1") {
		t.Errorf("HEAD@{1} is %s", got)
	}
	if got := run(t, repo.Dir(), "log", "--walk-reflogs", "-1", "--skip=1", "--format=%H", "main"); got == first {
		t.Errorf("the log of main begins with %s", got)
	}
}
