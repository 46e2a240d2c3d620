//go:build unix

package validate

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/within"
)

// The folder of --crds may come with a pull request: what is neither a file nor a folder in it is refused by name, and nobody waits for it.
func TestCRDsOfAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "crds.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, filepath.Join(dir, "crds.yaml")} {
		if err := newSchemas(nil).addFolder(name); !errors.Is(err, within.ErrNotRegular) {
			t.Errorf("--crds %s: %v", name, err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := newSchemas(nil).addFolder(dir); err == nil {
		t.Error("a link to a device was read")
	}
}
