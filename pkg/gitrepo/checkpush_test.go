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

// everything returns every reference of the remote and its commit, in which any change of the remote would show.
func everything(t *testing.T, r *gittest.Repo) string {
	t.Helper()
	return gittest.Git(t, r.Dir, "for-each-ref")
}

func TestCheckPush(t *testing.T) {
	for name, seed := range map[string]func(*testing.T, *gittest.Repo){
		"empty":          func(*testing.T, *gittest.Repo) {},
		"one branch":     func(t *testing.T, r *gittest.Repo) { t.Helper(); r.Seed(t, "main", map[string]string{"a": "1"}) },
		"another branch": func(t *testing.T, r *gittest.Repo) { t.Helper(); r.Seed(t, "other", map[string]string{"a": "1"}) },
		"two branches": func(t *testing.T, r *gittest.Repo) {
			t.Helper()
			r.Seed(t, "main", map[string]string{"a": "1"})
			r.Seed(t, "other", map[string]string{"b": "1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := gittest.NewHTTPS(t, gittest.Options{})
			seed(t, s.Repo)
			gone := filepath.Join(t.TempDir(), "updated")
			s.Hook(t, "post-receive", "touch "+gone+"\n")
			before := everything(t, s.Repo)
			if err := gitrepo.CheckPush(t.Context(), s.URL, tokenAuth(s), "main"); err != nil {
				t.Fatalf("may push: %v", err)
			}
			for hook, script := range map[string]string{
				"pre-receive": "while read -r o n ref; do test $ref != refs/heads/main || exit 1; done",
				"update":      "test $1 != refs/heads/main",
			} {
				s.Hook(t, hook, "echo sorry >&2\n"+script+"\n")
				err := gitrepo.CheckPush(t.Context(), s.URL, tokenAuth(s), "main")
				if !errors.Is(err, gitrepo.ErrProtectedBranch) || diag.Hint(err) == "" || !strings.Contains(err.Error(), "sorry") {
					t.Errorf("refused by a %s hook: %v", hook, err)
				}
				if err := os.Remove(filepath.Join(s.Dir, "hooks", hook)); err != nil {
					t.Fatal(err)
				}
			}
			if err := gitrepo.CheckPush(t.Context(), s.URL, gitrepo.Auth{Username: s.Username, Token: s.ReadToken, CA: s.CA},
				"main"); !errors.Is(err, gitrepo.ErrNoPushRight) || errors.Is(err, gitrepo.ErrAuth) {
				t.Errorf("read-only token: %v", err)
			}
			if err := gitrepo.CheckPush(t.Context(), s.URL, gitrepo.Auth{Username: s.Username, Token: "wr0ng", CA: s.CA},
				"main"); !errors.Is(err, gitrepo.ErrAuth) || errors.Is(err, gitrepo.ErrNoPushRight) {
				t.Errorf("wrong token: %v", err)
			}
			if after := everything(t, s.Repo); after != before {
				t.Errorf("the remote has changed:\n%s\nwas\n%s", after, before)
			}
			if _, err := os.Stat(gone); err == nil {
				t.Error("a post-receive hook ran: the server thinks that something was pushed")
			}
		})
	}
}

// MayWrite finds out what a token may do without trying a push: no hook runs, and no object is left at the server.
func TestMayWrite(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{Protected: []string{"main"}})
	s.Seed(t, "main", map[string]string{"a": "1"})
	ran := filepath.Join(t.TempDir(), "ran")
	s.Hook(t, "pre-receive", "touch "+ran+"\n")
	look := func() string { return everything(t, s.Repo) + gittest.Git(t, s.Dir, "count-objects") }
	before := look()
	for _, c := range []struct {
		name, token string
		may         bool
		err         error
	}{
		{"one that pushes", s.Token, true, nil},
		{"one that only reads", s.ReadToken, false, nil},
		{"one that is none", "wr0ng", false, gitrepo.ErrAuth},
	} {
		may, err := gitrepo.MayWrite(t.Context(), s.URL, gitrepo.Auth{Username: s.Username, Token: c.token, CA: s.CA})
		if may != c.may || !errors.Is(err, c.err) || err != nil && strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: %t, %v", c.name, may, err)
		}
	}
	if after := look(); after != before {
		t.Errorf("the server has\n%s\nand had\n%s", after, before)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook ran")
	}
	keys := gittest.NewSSH(t, gittest.Options{})
	keys.Seed(t, "main", map[string]string{"a": "1"})
	for reads, want := range map[bool]bool{true: false, false: true} {
		if may, err := gitrepo.MayWrite(t.Context(), keys.URL, sshAuth(t, keys, reads)); err != nil || may != want {
			t.Errorf("a key that only reads is %t: may write is %t, %v", reads, may, err)
		}
	}
}

func TestCheckPushSSH(t *testing.T) {
	s := gittest.NewSSH(t, gittest.Options{Protected: []string{"release"}})
	s.Seed(t, "main", map[string]string{"a": "1"})
	auth := sshAuth(t, s, false)
	if err := gitrepo.CheckPush(t.Context(), s.URL, auth, "main"); err != nil {
		t.Errorf("may push: %v", err)
	}
	if err := gitrepo.CheckPush(t.Context(), s.URL, auth, "release"); !errors.Is(err, gitrepo.ErrProtectedBranch) {
		t.Errorf("protected branch: %v", err)
	}
	if err := gitrepo.CheckPush(t.Context(), s.URL, sshAuth(t, s, true), "main"); !errors.Is(err, gitrepo.ErrNoPushRight) {
		t.Errorf("read-only deploy key: %v", err)
	}
	if err := gitrepo.CheckPush(t.Context(), s.URL, gitrepo.Auth{Key: auth.Key}, "main"); !errors.Is(err, gitrepo.ErrHostKey) {
		t.Errorf("unknown host: %v", err)
	}
}
