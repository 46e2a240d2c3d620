//go:build linux

package embedded

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// watched is a context without an end, which tells that somebody waits for it.
type watched chan struct{}

func (watched) Deadline() (time.Time, bool) { return time.Time{}, false }
func (watched) Err() error                  { return nil }
func (watched) Value(any) any               { return nil }

func (w watched) Done() <-chan struct{} {
	select {
	case w <- struct{}{}:
	default:
	}
	return nil
}

// A command that made a host may be killed when its supervisor has the lock and no kubeconfig yet: the next one waits for it.
func TestKubeconfigThatIsAboutToBe(t *testing.T) {
	dir := t.TempDir()
	h, err := New("acme", Options{StateDir: dir, Executable: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Kubeconfig(t.Context()); err == nil {
		t.Error("a host that has never run has a kubeconfig")
	}
	lock := flock.New(filepath.Join(dir, aliveFile))
	if held, err := lock.TryLock(); err != nil || !held {
		t.Fatal(held, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Kubeconfig(ended); err == nil {
		t.Error("it does not end with its context")
	}
	type answer struct {
		content []byte
		err     error
	}
	got, waits := make(chan answer, 1), make(watched, 1)
	go func() {
		content, err := h.Kubeconfig(waits)
		got <- answer{content, err}
	}()
	if err := os.MkdirAll(filepath.Join(dir, controlPlaneDir), 0o700); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "made")
	if err := os.WriteFile(made, []byte("kubeconfig"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-waits:
	case a := <-got:
		t.Fatalf("it does not wait: %q, %v", a.content, a.err)
	}
	if err := os.Rename(made, filepath.Join(dir, controlPlaneDir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.err != nil || string(a.content) != "kubeconfig" {
		t.Errorf("got %q, %v", a.content, a.err)
	}
}
