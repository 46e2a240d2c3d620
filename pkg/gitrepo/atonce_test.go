package gitrepo_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// Commands that push from the same clone, and from another one, at the same time, all reach the remote.
func TestSyncsAtOnce(t *testing.T) {
	t.Parallel()
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1"})
	first, second := clone(t, server.URL, tokenAuth(server)), clone(t, server.URL, tokenAuth(server))
	var group sync.WaitGroup
	for i, repo := range []*gitrepo.Repo{first, first, first, second} {
		group.Go(func() {
			own, err := gitrepo.Open(repo.Dir())
			if err != nil {
				t.Error(err)
				return
			}
			name := "by-" + strconv.Itoa(i)
			add := put(gitrepo.Change{Path: name, Content: []byte("1")})
			if _, err := own.Sync(t.Context(), tokenAuth(server), add, "add "+name, author); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	group.Wait()
	for _, repo := range []*gitrepo.Repo{first, second} {
		if err := repo.CatchUp(t.Context(), tokenAuth(server)); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if name := "by-" + strconv.Itoa(i); read(t, repo.Dir(), name) != "1" {
				t.Errorf("%s lacks %s", repo.Dir(), name)
			}
		}
		whole(t, repo.Dir())
	}
}

// Another command may fetch a commit into the same clone as soon as the remote has it, before the command that pushed it goes on.
func TestPulledByAnother(t *testing.T) {
	t.Parallel()
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1"})
	repo := clone(t, server.URL, tokenAuth(server))
	server.Hook(t, "post-receive", "unset $(git rev-parse --local-env-vars)\ncd '"+repo.Dir()+"' && git fetch -q '"+server.Dir+
		"' main && git merge -q --ff-only FETCH_HEAD\n")
	done, err := repo.Sync(t.Context(), tokenAuth(server), put(gitrepo.Change{Path: "b", Content: []byte("1")}), "add b", author)
	if err != nil {
		t.Fatal(err)
	}
	if !done.Pushed || read(t, repo.Dir(), "b") != "1" || status(t, repo.Dir()) != "" {
		t.Errorf("%+v, status %q", done, status(t, repo.Dir()))
	}
	if head, err := repo.Head(); err != nil || head != done.Commit {
		t.Errorf("the branch is at %s, %v, and %s was pushed", head, err, done.Commit)
	}
	whole(t, repo.Dir())
}
