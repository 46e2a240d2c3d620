//go:build integration

package pivot

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// A dry run of a pivot fails with the same errors as the pivot, and changes nothing.
func TestDryRunIsRefusedAsThePivot(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	target, kubeconfig := kubetest.Start(t)
	if err := target.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownership.ClaimKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	theirs := &ownership.Claim{Fleet: lostFleet, Name: "theirs", Cluster: "mgmt", URL: "https://git.example.com/theirs.git"}
	if err := theirs.Create(ctx, target); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "theirs.kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	o := MoveOptions{Options: e.Options(t, "admin"), DryRun: true}
	refused := func(story, says, hint string) {
		t.Helper()
		if _, err := Pivot(ctx, e.Deps, o); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(diag.Hint(err), hint) {
			t.Errorf("%s: %v (%s)", story, err, diag.Hint(err))
		}
	}
	refused("without a target", "nothing says where to pivot to", "--to CLUSTER")
	o.ToKubeconfig = file
	refused("to another fleet's", "theirs", "")
	record := s.Record()
	record.PivotedTo = "platform"
	if err := s.Cluster.Save(record); err != nil {
		t.Fatal(err)
	}
	refused("once it was pivoted", "was pivoted to platform already", "fleetctl status")
	for _, c := range []*kube.Client{e.Client, target} {
		if j, err := handover.ReadJournal(ctx, c); err != nil || j != nil {
			t.Errorf("the journal is %+v, %v", j, err)
		}
	}
}

// A snapshot is refused, before anything is changed, if its management cluster still runs and has the clusters of the snapshot.
func TestRestoreOverTheLivingOne(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := handover.ClusterUID(ctx, e.Client)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRestoration(converge.NewRun(s))
	r.Snap = &snapshot.Snapshot{
		ID: "20260101T000000Z-abcdef", Fleet: s.Identity(), ManagementCluster: s.Mgmt.Name, UID: uid,
		Clusters: []string{"shop/shop"},
	}
	if err := r.Check(ctx, true); err != nil {
		t.Errorf("with its clusters lost: %v", err)
	}
	kubetest.ClusterAPI(t, e.Client, "clusters", "machines")
	if err := e.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	cluster := &unstructured.Unstructured{}
	if err := cluster.UnmarshalJSON([]byte(shop)); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(cluster.Object, "demo", "spec", "clusterNetwork", "serviceDomain"); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.Create(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(ctx, true); err == nil || !strings.Contains(err.Error(), "still manages clusters of the snapshot") ||
		strings.Contains(diag.Hint(err), "teardown") {
		t.Errorf("beside its clusters: %v (%s)", err, diag.Hint(err))
	}
}
