package validate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/validate"
)

// A file of many documents takes as long as one that is as large. Where each was compared with all others, this one took some ten minutes.
func TestManyDocuments(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(strings.Repeat("---\n", 500_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := validate.Run(t.Context(), validate.Options{Dir: dir, Offline: true}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %s", took)
	}
}
