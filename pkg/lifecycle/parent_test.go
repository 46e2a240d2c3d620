package lifecycle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundling"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// What only reads what is declared needs no management cluster, its parent least of all: nothing here has ever been made.
func TestReadingWhatIsDeclaredAsksNoParent(t *testing.T) {
	dir := t.TempDir()
	const missing = "https://127.0.0.1:1/no-such-release.yaml"
	content := `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://127.0.0.1:1/fleet.git"}
  flux: {version: v2.9.0, url: "` + missing + `"}
  environments: [{name: regions}]
  managementClusters:
  - name: root
    host: {type: embedded}
    providers: [{name: docker}]
  - name: region
    parent: root
    generation: region
    providers:
    - {name: cluster-api, type: core, version: v1.14.0, url: "` + missing + `"}
    - {name: kubeadm, type: bootstrap, version: v1.14.0, url: "` + missing + `"}
    - {name: kubeadm, type: control-plane, version: v1.14.0, url: "` + missing + `"}
    - {name: mine, type: infrastructure, version: v1.0.0, url: "` + missing + `"}
`
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	store := state.Store{Dir: t.TempDir()}
	deps := management.Deps{
		Report: progress.Discard, Store: store, CacheDir: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
	}
	o := session.Options{Dir: dir, Cluster: "region"}

	_, err := bundling.Create(t.Context(), deps, bundling.CreateOptions{Options: o, Output: filepath.Join(t.TempDir(), "bundle")})
	if err == nil || errors.Is(err, management.ErrUnknownCluster) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("bundle create: %v, want that the releases cannot be had", err)
	}
	_, err = DryRun(t.Context(), deps, o, filepath.Join(t.TempDir(), "plan"))
	if err == nil || errors.Is(err, management.ErrUnknownCluster) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("init --dry-run: %v, want that the releases cannot be had", err)
	}
	if left, err := store.Readable(); err != nil || len(left) != 0 {
		t.Errorf("there are records afterwards: %v, %v", left, err)
	}

	// Who is to reach it asks, and doctor tells it beside all else that it finds.
	if _, err := session.Open(t.Context(), deps, o); !errors.Is(err, management.ErrUnknownCluster) &&
		!strings.Contains(err.Error(), "ask management cluster root for region") {
		t.Errorf("init: %v, want that the parent is not there", err)
	}
	report, err := Doctor(t.Context(), deps, o)
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, r := range report.Checks {
		told = told || r.Status == preflight.StatusFail && strings.Contains(r.Summary, "ask management cluster root for region")
	}
	if !told || len(report.Checks) < 5 {
		t.Errorf("doctor does not tell it among others: %+v", report.Checks)
	}
}
