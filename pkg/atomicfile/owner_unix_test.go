//go:build unix

package atomicfile

import (
	"os"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A temporary folder is made where nobody else can put another one in its place.
func TestTempFolderOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		return // nothing can be given away
	}
	t.Setenv("SUDO_UID", "")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for mode, want := range map[os.FileMode]string{0o777: "belongs to", 0o700: "belongs to", 0o777 | os.ModeSticky: ""} {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		_, remove, err := TempFolder("", "test")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", mode, err)
		case want == "":
			if err := remove(); err != nil {
				t.Error(err)
			}
		case err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(diag.Hint(err), "TMPDIR"):
			t.Errorf("%s: %v", mode, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
