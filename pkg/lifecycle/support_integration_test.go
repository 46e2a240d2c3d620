//go:build integration

package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/management"
)

// A bootstrap that fails leaves what there was to see, for nobody else to read, and says where; one that is interrupted ends at once.
func TestFailedBootstrapLeavesASupportBundle(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	if _, err := e.Take(ctx, t); err != nil {
		t.Fatal(err)
	}
	o := BootstrapOptions{Options: e.Options(t, "admin")}
	o.Git.Token = "nobody's"
	result, err := Bootstrap(ctx, e.Deps, o)
	if err == nil || result == nil {
		t.Fatalf("got %+v, %v", result, err)
	}
	byItself := e.Deps.Store.Cluster("mgmt").Path(management.SupportFile)
	if info, err := os.Stat(byItself); err != nil || info.Mode().Perm() != 0o600 || result.SupportBundle != byItself {
		t.Errorf("%v, %v, %q", info, err, result.SupportBundle)
	}

	o.SupportFile = filepath.Join(t.TempDir(), "mine.tar.gz")
	if result, err = Bootstrap(ctx, e.Deps, o); err == nil || result.SupportBundle != o.SupportFile {
		t.Errorf("got %+v, %v", result, err)
	}
	if _, err := os.Stat(o.SupportFile); err != nil {
		t.Error(err)
	}

	over, end := context.WithCancel(ctx)
	end()
	o.SupportFile = filepath.Join(t.TempDir(), "interrupted.tar.gz")
	if result, err := Bootstrap(over, e.Deps, o); err == nil || result != nil && result.SupportBundle != "" {
		t.Errorf("interrupted: %+v, %v", result, err)
	}
	if _, err := os.Stat(o.SupportFile); err == nil {
		t.Error("interrupted, and it gathered a bundle")
	}
}
