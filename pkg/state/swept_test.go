package state

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// Files that have another name each time are no reason to keep what a killed command left of an earlier one.
func TestSweepsBesideFilesOfEachTime(t *testing.T) {
	s, fleet := Store{Dir: t.TempDir()}, Fleet{ID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427", Name: "acme"}
	for name, again := range map[string]func() (string, error){
		"a support bundle": func() (string, error) { return s.SupportBundle("mgmt", time.Now()) },
		"an edit":          func() (string, error) { return s.KeepEdit(fleet, "secrets/db.yaml", []byte("sealed")) },
	} {
		file, err := again()
		if err != nil {
			t.Fatal(err)
		}
		left := filepath.Join(filepath.Dir(file), atomicfile.TempName("earlier"))
		notes := filepath.Join(filepath.Dir(file), "notes.txt")
		for _, path := range []string{left, notes} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := again(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(left); err == nil {
			t.Errorf("%s: what a killed command left is still there", name)
		}
		if _, err := os.Lstat(notes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
