//go:build unix

package change

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/within"
)

// Whoever opens a pipe in the place of a file waits for ever.
func TestNoPipeIsReverted(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "cluster.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fileHere(dir, "cluster.yaml"); !errors.Is(err, within.ErrNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
	if content, err := fileHere(dir, "none.yaml"); content != nil || err != nil {
		t.Errorf("a file that is not there: %q, %v", content, err)
	}
}
