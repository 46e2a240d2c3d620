//go:build unix

package manifest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/manifest"
)

func TestApplyMode(t *testing.T) {
	root := t.TempDir()
	put(t, root, "f", "x", 0o644)
	var cs manifest.ChangeSet
	cs.Write(manifest.File{Path: "f", Content: []byte("x"), Mode: 0o600})
	planned, err := cs.Plan(root)
	if diff := manifest.Diff(planned); err != nil || diff != "mode of f: 644 -> 600\n" {
		t.Errorf("Diff = %q, %v", diff, err)
	}
	if _, err := cs.Apply(root); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(filepath.Join(root, "f")); info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
}
