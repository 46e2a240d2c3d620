//go:build integration

package pivot

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// takenFleet returns a management cluster of a fleet on an API server that knows clusters and machines, and a context for one test.
func takenFleet(t *testing.T) (context.Context, *standingtest.Cluster, *session.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	e := standingtest.New(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	kubetest.ClusterAPI(t, e.Client, "clusters", "machines")
	return ctx, e, s
}

// If the API server refuses an object of the fleet repo, a restore does not take over and can be undone. A drill reports the same error.
func TestRestoreTriesFlux(t *testing.T) {
	ctx, e, s := takenFleet(t)
	const service = "{apiVersion: v1, kind: Service, metadata: {namespace: default, name: fixed}, spec: {clusterIP: ADDRESS, ports: " +
		"[{port: 80}]}}\n"
	if _, err := kubetest.ApplyYAML(ctx, e.Client, []byte(strings.ReplaceAll(service, "ADDRESS", "None")), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(e.Dir, filepath.FromSlash(s.Mgmt.Dir()), "fixed.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(service, "ADDRESS", "10.0.0.77")), 0o600); err != nil {
		t.Fatal(err)
	}
	r := NewRestoration(converge.NewRun(s))
	r.Snap = &snapshot.Snapshot{ID: "20260101T000000Z-abcdef", Fleet: s.Identity(), ManagementCluster: s.Mgmt.Name, UID: "lost"}
	const says = "Service default/fixed, which Kustomization flux-system/flux-system applies"
	_, err := r.takeIn(ctx, e.Client, &following.Pushed{Session: s}, &resolve.Manifests{}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(diag.Hint(err), "fleetctl restore --abort") {
		t.Fatalf("%v (%s)", err, diag.Hint(err))
	}
	j, err := handover.ReadJournal(ctx, e.Client)
	if err != nil || j == nil || j.Phase.Committed() {
		t.Errorf("the journal is %+v, %v", j, err)
	}
	if _, err := handover.AbortRestore(ctx, s.Side(e.Client), nil); err != nil {
		t.Fatal(err)
	}
	d := &drill{session: s, snap: r.Snap, result: &DrillResult{}}
	if err := d.takeIn(ctx, e.Client, &resolve.Manifests{}, func(string) {}); err == nil || !strings.Contains(err.Error(), says) ||
		strings.Contains(diag.Hint(err), "--abort") {
		t.Errorf("a drill: %v (%s)", err, diag.Hint(err))
	}
}
