package checkup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// warnings keeps what it is told.
type warnings struct {
	progress.Reporter
	told []string
}

func (w *warnings) Warn(text string) { w.told = append(w.told, text) }

// init finds out before it makes a host that a registry gives it nothing, unless it was asked not to mind.
func TestRegistriesBeforeTheHost(t *testing.T) {
	dir := t.TempDir()
	fleet := `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: silent}
spec:
  flux: {registry: 127.0.0.1:1/fluxcd}
  managementClusters:
  - name: silent
    host: {type: embedded, embedded: {mirrors: [{registry: registry.k8s.io, mirror: "127.0.0.1:1/k8s"}]}}
`
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(skip ...string) (*session.Session, *warnings) {
		t.Helper()
		heard := &warnings{Reporter: progress.Discard}
		s, err := session.Open(t.Context(), management.Deps{
			Report: heard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
			LookupEnv: func(string) (string, bool) { return "", false },
		}, session.Options{Dir: dir, SkipPreflight: skip})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s, heard
	}

	s, heard := open()
	err := Registries(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "downloads: init could not download images: 127.0.0.1:1 cannot be reached") ||
		!strings.Contains(diag.Hint(err), "--skip-preflight downloads") || len(heard.told) > 0 {
		t.Errorf("%v (%s), warnings %q", err, diag.Hint(err), heard.told)
	}

	s, heard = open(Downloads)
	skipped := func(told string) bool {
		return strings.Contains(told, "cannot be reached") && strings.Contains(told, "skipped as asked")
	}
	if err := Registries(t.Context(), s); err != nil || !slices.ContainsFunc(heard.told, skipped) {
		t.Errorf("%v, warnings %q", err, heard.told)
	}
}
