//go:build integration

package connect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// A kubeconfig that leads to another fleet is refused. Nothing is kept of it, and the hint does not advise another name, as that of init
// does.
func TestConnectToAnotherFleet(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	if _, err := e.Take(ctx, t); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		fleetrepo.IdentityFile: string(fleetrepo.IdentityContent("1b4e28ba-2fa1-41d2-883f-0016d3cca427")),
		v1alpha1.FileName: `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: other}
spec:
  managementClusters:
  - name: theirs
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Connect(ctx, e.Deps, Options{Dir: dir, Kubeconfig: e.Kubeconfig, Context: "admin"})
	if !errors.Is(err, ownership.ErrOtherFleet) || !strings.Contains(err.Error(), "fleet acme") {
		t.Fatalf("%v", err)
	}
	if hint := diag.Hint(err); !strings.Contains(hint, "the kubeconfig of theirs") || strings.Contains(hint, "another name") {
		t.Errorf("hint %q", hint)
	}
	if _, err := e.Deps.Store.Cluster("theirs").Load(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is remembered: %v", err)
	}
}
