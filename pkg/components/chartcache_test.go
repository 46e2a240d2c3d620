package components_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/components"
)

// A chart is found by its digest, and only with its own content: the cache may be damaged.
func TestChartsKept(t *testing.T) {
	dir := t.TempDir()
	charts, archive := components.ChartsIn(dir), []byte("an archive")
	digest := components.Digest(archive)
	if got := charts.Kept(digest); got != nil {
		t.Fatalf("an empty cache has %q", got)
	}
	charts.Keep(archive)
	if got := charts.Kept(digest); string(got) != string(archive) {
		t.Fatalf("kept %q", got)
	}
	for _, wrong := range []string{"", "..", "../charts/" + digest, components.Digest([]byte("another"))} {
		if got := charts.Kept(wrong); got != nil {
			t.Errorf("%q has %q", wrong, got)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "charts", digest+".tgz"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := charts.Kept(digest); got != nil {
		t.Fatalf("the damaged cache has %q", got)
	}
	charts.Keep(archive)
	if got := charts.Kept(digest); string(got) != string(archive) {
		t.Errorf("the damaged archive was not replaced: %q", got)
	}
	if got := components.ChartsIn("").Kept(digest); got != nil {
		t.Errorf("no cache has %q", got)
	}
}
