//go:build integration

package status

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A workload cluster's own record names another management cluster, which counts as many hand-overs: both were restored from one snapshot.
// Only clusters with an initialized control plane are asked, and a kubeconfig that would run a command is not used.
func TestStatusAsksTheWorkloadClusters(t *testing.T) {
	client, _ := kubetest.Start(t)
	workload, kubeconfig := kubetest.Start(t)
	ctx := t.Context()
	kubetest.ClusterAPI(t, client, "clusters", "machines", "machinedeployments")
	uid, err := handover.ClusterUID(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	hostile := strings.Replace(string(kubeconfig), "users:",
		"users:\n- name: evil\n  user: {exec: {command: touch, args: [/tmp/owned], apiVersion: client.authentication.k8s.io/v1}}", 1)
	mine := capi.Owner{Fleet: "f", ManagementCluster: "first", UID: uid, Epoch: 2}
	add := func(name, kubeconfig string, initialized bool) {
		t.Helper()
		if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-kubeconfig"}, Data: map[string][]byte{"value": []byte(kubeconfig)},
		}
		if err := client.Create(ctx, secret); err != nil {
			t.Fatal(err)
		}
		cluster := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
			"metadata": map[string]any{"namespace": name, "name": name, "annotations": map[string]any{capi.OwnerMark: mine.String()}},
			"spec":     map[string]any{"clusterNetwork": map[string]any{"serviceDomain": "cluster.local"}},
		}}
		if err := client.Create(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		if !initialized {
			return
		}
		cluster.Object["status"] = map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}}
		if err := client.Status().Update(ctx, cluster); err != nil {
			t.Fatal(err)
		}
	}
	add("shop", string(kubeconfig), true)
	add("early", string(kubeconfig), false)
	add("hostile", hostile, true)
	theirs := capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.OwnerKey.Namespace, Name: handover.OwnerKey.Name},
		Data:       map[string]string{"owner": theirs.String()},
	}
	if err := workload.Create(ctx, record); err != nil {
		t.Fatal(err)
	}
	look := func() (*Report, int) {
		r := Collect(ctx, Sources{Cluster: Cluster{Name: "first", State: stateRunning}, Client: client, FleetID: "f"})
		two := 0
		for _, p := range r.Problems {
			if strings.Contains(p.Reason, "TWO OWNERS: its own record says that management cluster second ") && p.Object == "Cluster shop/shop" {
				two++
			}
		}
		return r, two
	}
	r, two := look()
	if two != 1 || r.OwnRecords != (OwnRecords{Answered: 1, NotAsked: 1}) {
		t.Errorf("got %+v, %+v", r.OwnRecords, r.Problems)
	}
	for _, w := range r.Clusters {
		if w.TwoOwners != (w.Name == "shop") {
			t.Errorf("%s: %+v", w.Name, w)
		}
	}
	record.Data["owner"] = mine.String()
	if err := workload.Update(ctx, record); err != nil {
		t.Fatal(err)
	}
	if r, two := look(); two != 0 || r.OwnRecords.Answered != 1 {
		t.Errorf("its own: %+v, %+v", r.OwnRecords, r.Problems)
	}
	if err := workload.WithWatch.Delete(ctx, record); err != nil {
		t.Fatal(err)
	}
	if r, two := look(); two != 0 || r.OwnRecords.Answered != 1 {
		t.Errorf("no record: %+v, %+v", r.OwnRecords, r.Problems)
	}
	if none, err := workload.ConfigMap(ctx, kube.Key{Namespace: "none", Name: "none"}); none != nil || err != nil {
		t.Errorf("no namespace: %v, %v", none, err)
	}
}
