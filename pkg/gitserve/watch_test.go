package gitserve

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest" //nolint:depguard // runs git for tests
)

// Whatever way git has of writing a ref, it is told of, and nothing else is.
func TestWatchRefs(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		gittest.Git(t, dir, args...)
	}
	git("init", "--quiet", "--initial-branch=main")
	git("commit", "--quiet", "--allow-empty", "-m", "first")

	told := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- watchRefs(ctx, filepath.Join(dir, ".git"), func() { told <- struct{}{} }) }()
	await := func(what string) {
		t.Helper()
		select {
		case <-told:
		case err := <-ended:
			t.Fatalf("%s: the watch has ended: %v", what, err)
		case <-time.After(time.Minute):
			t.Fatalf("%s: not told", what)
		}
		for len(told) > 0 {
			<-told
		}
	}
	// It takes a moment until all is watched, and there is no telling when.
	for watched := false; !watched; {
		git("commit", "--quiet", "--allow-empty", "-m", "until it is seen")
		select {
		case <-told:
			watched = true
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(3 * settleTime):
		}
	}
	for _, step := range []struct {
		what string
		args []string
	}{
		{"commit", []string{"commit", "--quiet", "--allow-empty", "-m", "second"}},
		{"tag", []string{"tag", "v1.0.0"}},
		{"branch in a folder", []string{"branch", "feature/deep/one"}},
		{"commit in a folder", []string{"branch", "--force", "feature/deep/one", "HEAD~1"}},
		{"packed refs", []string{"pack-refs", "--all"}},
		{"commit after packing", []string{"commit", "--quiet", "--allow-empty", "-m", "third"}},
		{"deleted tag", []string{"tag", "--delete", "v1.0.0"}},
		{"another branch", []string{"checkout", "--quiet", "feature/deep/one"}},
	} {
		git(step.args...)
		await(step.what)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("at the end: %v", err)
	}
}

func TestIsRef(t *testing.T) {
	for name, want := range map[string]bool{
		"HEAD": true, "packed-refs": true, "refs/heads/main": true, "refs/tags/v1": true, "refs/heads/feature/x": true,
		"index": false, "HEAD.lock": false, "refs/heads/main.lock": false, "COMMIT_EDITMSG": false, "ORIG_HEAD": false,
	} {
		if got := isRef([]string{"/r/.git"}, filepath.Join("/r/.git", name)); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The branches of a linked working tree are in the repository that it belongs to.
func TestWatchRefsOfLinkedTree(t *testing.T) {
	repo, linked := t.TempDir(), filepath.Join(t.TempDir(), "linked")
	gittest.Git(t, repo, "init", "--quiet", "--initial-branch=main")
	gittest.Git(t, repo, "commit", "--quiet", "--allow-empty", "-m", "first")
	gittest.Git(t, repo, "worktree", "add", "--quiet", "-b", "fleet/linked", linked)
	dir, err := gitDir(linked)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := refDirs(dir)
	if err != nil || len(dirs) != 2 {
		t.Fatalf("folders of refs %q, %v", dirs, err)
	}
	if isRef(dirs, filepath.Join(dirs[0], "index")) || !isRef(dirs, filepath.Join(dirs[0], "HEAD")) ||
		!isRef(dirs, filepath.Join(dirs[1], "packed-refs")) {
		t.Error("the index counts as a ref, or HEAD or packed-refs do not")
	}
	told := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- watchRefs(ctx, dir, func() { told <- struct{}{} }) }()
	// It takes a moment until all is watched, and there is no telling when.
	for tries := 0; ; tries++ {
		gittest.Git(t, linked, "commit", "--quiet", "--allow-empty", "-m", "until it is seen")
		select {
		case <-told:
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(3 * settleTime):
			if tries < 200 {
				continue
			}
			t.Fatal("commits in a linked working tree are not seen")
		}
		break
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// A system that drops events says so. The watch goes on, and takes the loss for a change.
func TestWatchGoesOnAfterLostEvents(t *testing.T) {
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch=main")
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watcher.Close() }()
	told := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- follow(ctx, watcher, []string{filepath.Join(dir, ".git")}, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	for _, what := range []string{"lost events", "a commit after them"} {
		if what == "lost events" {
			watcher.Errors <- fsnotify.ErrEventOverflow
		} else {
			gittest.Git(t, dir, "commit", "--quiet", "--allow-empty", "-m", "first")
		}
		select {
		case <-told:
		case err := <-ended:
			t.Fatalf("%s: the watch has ended: %v", what, err)
		case <-time.After(time.Minute):
			t.Fatalf("%s: not told", what)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("at the end: %v", err)
	}
}
