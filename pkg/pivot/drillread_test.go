package pivot

import (
	"path"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

// writeCluster declares the cluster shop as a manifest that a management cluster's Flux applies.
func writeCluster(t *testing.T, dir string, at layout.Layout) {
	t.Helper()
	putFile(t, dir, at.SyncFile(), `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/fleet.git", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./`+at.Management()+`, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`)
	putFile(t, dir, path.Join(at.Management(), "shop.yaml"),
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: shop, namespace: shop}\n")
}

// A drill knows the clusters that Git declares as manifests: those of the snapshot are not called gone, and the others are missed.
func TestDrillKnowsClustersOfManifests(t *testing.T) {
	for _, c := range []struct {
		written  bool
		snapshot []string
		findings int
	}{
		{written: true, snapshot: []string{"shop/shop"}},
		{written: true, findings: 1},
		{snapshot: []string{"shop/shop"}, findings: 1},
	} {
		r, _ := newRestoration(t, "")
		if c.written {
			writeCluster(t, r.session.Opts.Dir, r.session.Layout())
		}
		d := &drill{session: r.session, snap: r.Snap, result: &DrillResult{}}
		d.snap.Clusters = c.snapshot
		if err := d.readGit(t.Context()); err != nil || len(d.result.Findings) != c.findings {
			t.Errorf("written %t, in the snapshot %v: %v, %+v", c.written, c.snapshot, err, d.result.Findings)
		}
	}
}

// A cluster of manifests that the fleet repo has moved to another management cluster is not restored without a word.
func TestOwnersOfClustersOfManifests(t *testing.T) {
	r, _ := newRestoration(t, "")
	second, err := r.session.Fleet.ManagementCluster("second")
	if err != nil {
		t.Fatal(err)
	}
	writeCluster(t, r.session.Opts.Dir, second.Layout())
	owners, err := declaredElsewhere(t.Context(), r.session)
	if err != nil || owners["shop"] != "second" {
		t.Errorf("%v, %v", owners, err)
	}
}
