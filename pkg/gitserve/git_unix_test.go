//go:build unix

package gitserve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/within"
)

// A file that points at the repository can be of any kind: a pipe, or a file without an end.
func TestPointersAreFiles(t *testing.T) {
	dir := t.TempDir()
	dot := filepath.Join(dir, ".git")
	if err := syscall.Mkfifo(dot, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := linkedDir(dir, dot); !errors.Is(err, within.ErrNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
	if err := os.Remove(dot); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dot, []byte("gitdir: "+strings.Repeat("x", maxPointer)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := linkedDir(dir, dot); !errors.Is(err, within.ErrTooLarge) {
		t.Errorf("a long one: %v", err)
	}
}
