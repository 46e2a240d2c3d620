//go:build e2e

package handover

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// refusesContent is a hook that lets the question pass whether a push would be accepted, and refuses the push itself.
const refusesContent = "while read -r old new ref; do test $old = $new || { echo no such content here >&2; exit 1; }; done\n"

// TestTransferAsksTheRemoteFirst transfers a Cluster with --push to remotes that would not take the change. What the remote tells in
// advance is refused before the first write to either API server. What it refuses only when it sees the commit leaves the Cluster at the
// target, and the same command finishes.
func TestTransferAsksTheRemoteFirst(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	w := newReleased(ctx, t)
	machine := w.restore(ctx, t, w.beginning)
	f := w.followed(ctx, t)
	transfer := func(f *twoInOne) outcome {
		return w.execute(ctx, t, f.command(t, false), transferCommand, machine, &run{})
	}
	refused := func(t *testing.T, o outcome, want ...string) {
		t.Helper()
		if o.code == 0 || o.count() != 0 {
			t.Errorf("exit %d after %d writes:\n%s", o.code, o.count(), o.output)
		}
		for _, words := range append(want, "nothing has been handed over") {
			if !strings.Contains(o.output, words) {
				t.Errorf("it does not say %q:\n%s", words, o.output)
			}
		}
	}
	hook := filepath.Join(f.server.Dir, "hooks", "pre-receive")
	t.Run("a token that may only read", func(t *testing.T) {
		reads := *f
		reads.Token = f.server.ReadToken
		refused(t, transfer(&reads), "no right to push")
	})
	t.Run("a protected branch", func(t *testing.T) {
		f.server.Protect(t, "main")
		refused(t, transfer(f), "the server refuses pushes to the branch", "--pr")
		if err := os.Remove(hook); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a remote that does not answer", func(t *testing.T) {
		gittest.Git(t, f.Dir, "remote", "set-url", "origin", "https://127.0.0.1:1/fleet.git")
		refused(t, transfer(f), "server not reachable")
		gittest.Git(t, f.Dir, "remote", "set-url", "origin", f.server.URL)
	})
	t.Run("a clone with a commit of its own, while the remote has moved on", func(t *testing.T) {
		f.server.Seed(t, "main", map[string]string{"notes.txt": "theirs\n"})
		gittest.Git(t, f.Dir, "commit", "--quiet", "--allow-empty", "--message", "Mine")
		refused(t, transfer(f), "have diverged", "git pull --rebase")
		gittest.Git(t, f.Dir, "reset", "--quiet", "--hard", "HEAD~1")
	})
	// The clone is behind the remote now, with which the command catches up.
	t.Run("a remote that refuses the commit when it sees it", func(t *testing.T) {
		f.server.Hook(t, "pre-receive", refusesContent)
		o := transfer(f)
		if o.code == 0 || o.count() == 0 || !strings.Contains(o.output, "no such content here") ||
			!strings.Contains(o.output, "the target has the cluster") || !strings.Contains(o.output, "run the same command again") {
			t.Errorf("exit %d after %d writes:\n%s", o.code, o.count(), o.output)
		}
		if lost := neither(ctx, t, w); len(lost) > 0 {
			t.Errorf("lost: %v", lost)
		}
		if err := os.Remove(hook); err != nil {
			t.Fatal(err)
		}
		again := transfer(f)
		if again.code != 0 || !strings.Contains(again.output, "outcome: transferred") {
			t.Fatalf("again: exit %d\n%s", again.code, again.output)
		}
		arrived(t, w, f, "after the refusal")
	})
}
