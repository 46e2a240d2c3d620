package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// For every content of a management cluster's folder: the record is the same after it is read and written again, or the error names the
// file to remove. A second command learns that another command is at work.
func FuzzRecord(f *testing.F) {
	f.Add(
		[]byte(
			`{"formatVersion": "1", "name": "mgmt", "fleet": "acme", "repo": "/home/me/fleet", "hostType": "kind", "ephemeral": true, "mergedInto": "/home/me/.kube/config"}`,
		),
	)
	f.Add([]byte(`{"pid": 42, "command": "fleetctl init", "since": "2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"pid": "42", "since": "yesterday"}`))
	f.Add([]byte(`{"name": "mg`))
	f.Add([]byte(`null`))
	f.Add([]byte{})
	c := Store{Dir: f.TempDir()}.Cluster("mgmt")
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, name := range []string{recordFile, "lock-holder.json"} {
			if err := c.Write(name, content); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.heldError(); !strings.Contains(err.Error(), "management cluster mgmt") || diag.Hint(err) == "" {
			t.Errorf("it is held: %v", err)
		}
		r, err := c.Load()
		if err != nil {
			if !strings.Contains(err.Error(), filepath.Join(c.Dir, recordFile)) || !strings.Contains(diag.Hint(err), "remove the file") {
				t.Errorf("%v (%s)", err, diag.Hint(err))
			}
			return
		}
		if err := c.Save(*r); err != nil {
			t.Fatal(err)
		}
		again, err := c.Load()
		if err != nil {
			t.Fatal(err)
		}
		r.FormatVersion = "1"
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if info, err := os.Stat(c.Path(recordFile)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read it: %v, %v", info, err)
		}
	})
}
