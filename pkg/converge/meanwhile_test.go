package converge

import (
	"context"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// busyRepo is a repository with one commit, in which somebody works while others look at it.
type busyRepo struct {
	*gitrepo.Repo
	git   func(args ...string) string
	looks int
}

func newBusyRepo(t *testing.T) *busyRepo {
	t.Helper()
	dir := t.TempDir()
	b := &busyRepo{git: func(args ...string) string { return strings.TrimSpace(gittest.Git(t, dir, args...)) }}
	b.git("init", "--quiet", "--initial-branch=main")
	b.git("config", "user.name", "a")
	b.git("config", "user.email", "a@example.com")
	b.git("commit", "--quiet", "--allow-empty", "-m", "start")
	var err error
	if b.Repo, err = gitrepo.Open(dir); err != nil {
		t.Fatal(err)
	}
	return b
}

// ours wants a file, and the first time does meanwhile.
func (b *busyRepo) ours(meanwhile func()) wantedChanges {
	return func(context.Context, string) ([]gitrepo.Change, error) {
		if b.looks++; b.looks == 1 {
			meanwhile()
		}
		return []gitrepo.Change{{Path: "ours", Content: []byte("1")}}, nil
	}
}

// A commit that somebody makes while init looks at the fleet repo is kept, and init commits on top of it.
func TestCommitHereOnTopOfTheirs(t *testing.T) {
	t.Parallel()
	b := newBusyRepo(t)
	commit, made, err := CommitHere(t.Context(), b.Repo, "ours\n", b.ours(func() {
		b.git("commit", "--quiet", "--allow-empty", "-m", "theirs")
	}))
	if err != nil || !made || b.looks != 2 || b.git("rev-parse", "HEAD") != commit {
		t.Errorf("looked %d times, made %t as %s, %v", b.looks, made, commit, err)
	}
	if all := b.git("log", "--topo-order", "--format=%s"); all != "ours\ntheirs\nstart" {
		t.Errorf("the branch has %q", all)
	}
}

// Init does not commit to a branch to which somebody has switched meanwhile.
func TestCommitHereStaysOnItsBranch(t *testing.T) {
	t.Parallel()
	b := newBusyRepo(t)
	_, _, err := CommitHere(t.Context(), b.Repo, "ours\n", b.ours(func() {
		b.git("switch", "--quiet", "--create", "other")
		b.git("commit", "--quiet", "--allow-empty", "-m", "theirs")
	}))
	if err == nil || !strings.Contains(err.Error(), "from the branch main to other") {
		t.Errorf("no error that somebody has switched to another branch, but %v", err)
	}
	if all := b.git("log", "--all", "--topo-order", "--format=%s"); all != "theirs\nstart" {
		t.Errorf("the branches have %q", all)
	}
}
