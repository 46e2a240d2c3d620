//go:build unix

package gitrepo_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// tooLong is far less than what programs in these tests would wait for, and far more than a commit takes.
const tooLong = 60 * time.Second

// commitSoon commits, and fails where that takes as long as what hooks leave behind.
func commitSoon(ctx context.Context, t *testing.T, repo *gitrepo.Repo) error {
	t.Helper()
	begun := time.Now()
	_, _, err := repo.Commit(ctx, []gitrepo.Change{edited}, "change", gitrepo.Author{})
	if took := time.Since(begun); took > tooLong {
		t.Errorf("the commit took %s", took)
	}
	return err
}

// What a hook leaves running in the background holds the hook's output open. git does not wait for it, and neither do we.
func TestHookLeavesAProgramBehind(t *testing.T) {
	for _, name := range []string{"pre-commit", "post-commit"} {
		t.Run(name, func(t *testing.T) {
			repo := started(t)
			pid := filepath.Join(t.TempDir(), "pid")
			t.Cleanup(func() { endSleeper(t, pid) })
			hook(t, repo.Dir(), ".git/hooks/"+name, "sleep 600 &\necho $! >"+pid+"\n")
			if err := commitSoon(t.Context(), t, repo); err != nil {
				t.Fatal(err)
			}
			if got := run(t, repo.Dir(), "show", "HEAD:a.yaml"); !strings.HasPrefix(got, "a: one") {
				t.Errorf("committed: %s", got)
			}
		})
	}
}

// Nor does whoever interrupts a command wait for the children of a hook or of a filter.
func TestInterruptedProgram(t *testing.T) {
	repo := started(t)
	pid := filepath.Join(t.TempDir(), "pid")
	t.Cleanup(func() { endSleeper(t, pid) })
	hook(t, repo.Dir(), ".git/hooks/pre-commit", "sleep 600 &\necho $! >"+pid+".part; mv "+pid+".part "+pid+"\nwait\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ; ; runtime.Gosched() {
			if _, err := os.Stat(pid); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
		}
	}()
	if err := commitSoon(ctx, t, repo); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if got := run(t, repo.Dir(), "status", "--porcelain"); got != "" {
		t.Errorf("left: %s", got)
	}
}

// endSleeper ends the program whose id is in a file.
func endSleeper(t *testing.T, name string) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

// git gives a hook that does not begin with #! to sh.
func TestHookWithoutInterpreter(t *testing.T) {
	repo := started(t)
	name := filepath.Join(repo.Dir(), ".git/hooks/commit-msg")
	write(t, repo.Dir(), ".git/hooks/commit-msg", "echo more >>\"$1\"\n")
	if err := os.Chmod(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := commitSoon(t.Context(), t, repo); err != nil {
		t.Fatal(err)
	}
	if got := run(t, repo.Dir(), "log", "-1", "--format=%B"); !strings.Contains(got, "more") {
		t.Errorf("the message is %q", got)
	}
}

// Of a hook that prints without end, the beginning and the end are kept.
func TestHookPrintsMuch(t *testing.T) {
	repo := started(t)
	hook(t, repo.Dir(), ".git/hooks/pre-commit", "echo at first; head -c 300000000 /dev/zero | tr '\\0' x; echo; echo at last; exit 1\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := commitSoon(t.Context(), t, repo)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, gitrepo.ErrHook) || !strings.Contains(err.Error(), "at first") || !strings.Contains(err.Error(), "at last") ||
		len(err.Error()) > 5000 {
		t.Errorf("the error is %.3000v", err)
	}
	const most = 64 << 20
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("it took %d bytes", used)
	}
}
