package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// The addresses of a remote, for reading and for pushing, are those that git uses, with the rules of the user and of the repository.
func TestAddressesAsGitHasThem(t *testing.T) {
	for name, c := range map[string]struct{ user, repo string }{
		"as it is written":      {},
		"another's prefix":      {user: "[url \"https://git.example.com/\"]\n\tinsteadOf = gh:\n"},
		"an alias":              {user: "[url \"https://git.example.com/\"]\n\tinsteadOf = work:\n"},
		"an alias of many":      {user: "[url \"https://git.example.com/\"]\n\tinsteadOf = gh:\n\tinsteadOf = work:\n"},
		"the longest":           {user: "[url \"https://short/\"]\n\tinsteadOf = w\n[url \"https://long/\"]\n\tinsteadOf = work:ac\n"},
		"of the repository":     {repo: "[url \"https://git.example.com/\"]\n\tinsteadOf = work:\n"},
		"for pushes":            {repo: "[url \"ssh://git@git.example.com/\"]\n\tpushInsteadOf = work:\n"},
		"for pushes and others": {user: "[url \"ssh://git@host/\"]\n\tpushInsteadOf = work:\n[url \"https://host/\"]\n\tinsteadOf = work:\n"},
		"an address for pushes": {
			repo: "[remote \"origin\"]\n\tpushurl = work:other\n",
			user: "[url \"ssh://git@host/\"]\n\tpushInsteadOf = work:\n[url \"https://host/\"]\n\tinsteadOf = work:\n",
		},
		"only a rule for push": {repo: "[remote \"origin\"]\n\tpushurl = https://host/other\n"},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox(t, tess+c.user)
			dir := t.TempDir()
			run(t, dir, "init", "-q", "-b", "main")
			run(t, dir, "remote", "add", "origin", "work:acme/fleet")
			config, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := config.WriteString(c.repo); err != nil || config.Close() != nil {
				t.Fatal(err)
			}
			repo, err := gitrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			read, push, err := repo.Addresses()
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimSpace(run(t, dir, "remote", "get-url", "origin")); read != want {
				t.Errorf("read from %s, and git from %s", read, want)
			}
			if want := strings.TrimSpace(run(t, dir, "remote", "get-url", "--push", "origin")); push != want {
				t.Errorf("push to %s, and git to %s", push, want)
			}
		})
	}
}

// fleetctl pushes a change where git would push it, and refuses to push it anywhere else.
func TestPushGoesWhereGitPushes(t *testing.T) {
	server, other := gittest.NewHTTPS(t, gittest.Options{}), gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1\n"})
	for name, c := range map[string]struct {
		set     []string // arguments of git config
		refused string   // in the error
	}{
		"as it follows":        {},
		"another remote":       {set: []string{"branch.main.pushRemote", "fork"}, refused: "git pushes it to fork"},
		"another one of all":   {set: []string{"remote.pushDefault", "fork"}, refused: "git pushes it to fork"},
		"the same by its name": {set: []string{"branch.main.pushRemote", "origin"}},
		"another branch": {
			set:     []string{"branch.main.merge", "refs/heads/next"},
			refused: "follows next of origin, which has another name",
		},
		"two addresses": {
			set:     []string{"--add", "remote.origin.url", other.URL},
			refused: "git pushes to 2 addresses of the remote origin",
		},
		"one address for pushes": {set: []string{"--add", "remote.origin.pushurl", server.URL}},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox(t, tess)
			auth := tokenAuth(server)
			repo := clone(t, server.URL, auth)
			run(t, repo.Dir(), "remote", "add", "fork", other.URL)
			if len(c.set) > 0 {
				run(t, repo.Dir(), append([]string{"config"}, c.set...)...)
			}
			before := server.Head(t, "main")
			made, err := repo.Sync(t.Context(), auth, put(gitrepo.Change{Path: "b", Content: []byte(name)}), "b\n", gitrepo.Author{})
			if c.refused != "" {
				if !errors.Is(err, gitrepo.ErrPushElsewhere) || !strings.Contains(err.Error(), c.refused) || diag.Hint(err) == "" {
					t.Errorf("the error is %v, hint %q", err, diag.Hint(err))
				}
				if server.Head(t, "main") != before || status(t, repo.Dir()) != "" {
					t.Error("it did something")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if server.Head(t, "main") != made.Commit {
				t.Error("it is not where git pushes to")
			}
		})
	}
}

// A remote may be read over SSH and pushed to over HTTPS. The token is only for the address of pushes.
func TestPushesToAnotherAddress(t *testing.T) {
	sandbox(t, tess)
	from, to := gittest.NewSSH(t, gittest.Options{}), gittest.NewHTTPS(t, gittest.Options{})
	before := from.Seed(t, "main", map[string]string{"a": "1\n"})
	run(t, to.Dir, "fetch", "-q", from.Dir, "main:main")
	auth := sshAuth(t, from, false)
	auth.Username, auth.Token, auth.CA = to.Username, to.Token, to.CA
	repo := clone(t, from.URL, auth)
	run(t, repo.Dir(), "config", "remote.origin.pushurl", to.URL)
	made, err := repo.Sync(t.Context(), auth, put(gitrepo.Change{Path: "b", Content: []byte("1")}), "b\n", gitrepo.Author{})
	if err != nil {
		t.Fatal(err)
	}
	if to.Head(t, "main") != made.Commit || from.Head(t, "main") != before {
		t.Errorf("%s is pushed: the remote has %s where git pushes to, and %s where it reads", made.Commit,
			to.Head(t, "main"), from.Head(t, "main"))
	}
}

// A user's rule for addresses may have a password. fleetctl uses the password and never prints it.
func TestPasswordOfARule(t *testing.T) {
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1\n"})
	auth := tokenAuth(server)
	base, name, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), "/")
	sandbox(t, tess+"[url \"https://"+auth.Username+":"+auth.Token+"@"+base+"/\"]\n\tinsteadOf = work:\n")
	anonymous := auth
	anonymous.Username, anonymous.Token = "", ""
	repo := clone(t, "work:"+name, anonymous)
	if _, err := repo.Sync(t.Context(), anonymous, put(gitrepo.Change{Path: "b", Content: []byte("1")}), "b\n", gitrepo.Author{}); err != nil {
		t.Fatal(err)
	}
	url, _, err := repo.Remote()
	if err != nil || url != server.URL {
		t.Errorf("the remote is %s, %v", url, err)
	}
	server.Protect(t, "main")
	_, err = repo.Sync(t.Context(), anonymous, put(gitrepo.Change{Path: "b", Content: []byte("2")}), "b\n", gitrepo.Author{})
	if err == nil || strings.Contains(err.Error()+diag.Hint(err), auth.Token) {
		t.Errorf("the error is %v", err)
	}
}

// A branch without a tracked branch belongs to the only remote, whatever its name. If there are several, the error names them.
func TestBranchThatFollowsNothing(t *testing.T) {
	sandbox(t, tess)
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1\n"})
	repo := clone(t, server.URL, tokenAuth(server))
	run(t, repo.Dir(), "remote", "rename", "origin", "upstream")
	run(t, repo.Dir(), "config", "--remove-section", "branch.main")
	if _, err := repo.Sync(t.Context(), tokenAuth(server), put(gitrepo.Change{Path: "b", Content: []byte("1")}), "b\n",
		gitrepo.Author{}); err != nil {
		t.Fatal(err)
	}
	if run(t, repo.Dir(), "rev-parse", "refs/remotes/upstream/main") != run(t, repo.Dir(), "rev-parse", "HEAD") {
		t.Error("nobody knows that it was pushed")
	}
	run(t, repo.Dir(), "remote", "add", "fork", server.URL)
	_, err := repo.Sync(t.Context(), tokenAuth(server), put(gitrepo.Change{Path: "b", Content: []byte("2")}), "b\n", gitrepo.Author{})
	if err == nil || !strings.Contains(err.Error(), "fork, upstream") || !strings.Contains(diag.Hint(err), "--set-upstream-to") {
		t.Errorf("the error is %v", err)
	}
}
