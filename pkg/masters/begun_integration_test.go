//go:build integration

package masters

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// A parent that answers, but has nothing of the begun hand-over, is another management cluster of the same name. A parent that has the
// Clusters or the journal is the right one.
func TestNotASecondTimeByAnother(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := openMasters(t, mastersFleet)
	if err := os.WriteFile(filepath.Join(r.Dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(fleetID), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := r.BeginHandOver(masterOf(t, r), &fleetrepo.HandedOver{
		At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		By: "ci on runner-7", Version: "v1.2.3",
	})
	r = apply(t, r, e, err)
	d := deps(t)
	root := standing(ctx, t, d, r.Dir, "root")
	refused := func() error {
		t.Helper()
		m := &master{
			Deps: d, opts: Options{BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: r.Dir}}, Master: masterOf(t, r)},
			result: &Result{Cluster: "eu", Parent: "root"},
		}
		if under, err := m.underWay(ctx); under || err != nil {
			t.Fatalf("under way: %t, %v", under, err)
		}
		return m.refuseBegun()
	}
	if err := refused(); err == nil || !strings.Contains(err.Error(), "neither the root that did nor eu") {
		t.Errorf("by one that has nothing of it: %v", err)
	}
	applyYAML(ctx, t, root, "{apiVersion: v1, kind: Namespace, metadata: {name: eu}}")
	applyYAML(ctx, t, root, "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: eu, name: eu}, "+
		"spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TestCluster, name: eu}}}")
	if err := refused(); err != nil {
		t.Errorf("by the one that has it: %v", err)
	}
}
