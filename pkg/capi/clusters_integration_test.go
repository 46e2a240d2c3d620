//go:build integration

package capi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// newCluster makes a Cluster with one Machine, both in the state of a healthy cluster.
func newCluster(t *testing.T, c *kube.Client, namespace, name string) {
	t.Helper()
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	yes := true
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: name,
		}},
	}
	if err := c.Create(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	condition := func(name string) metav1.Condition {
		return metav1.Condition{Type: name, Status: "True", Reason: "Fine", LastTransitionTime: now, ObservedGeneration: cluster.Generation}
	}
	cluster.Status.Phase = "Provisioned"
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: &yes, ControlPlaneInitialized: &yes}
	cluster.Status.Conditions = []metav1.Condition{condition("Available"), condition("ControlPlaneInitialized")}
	if err := c.Status().Update(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-m0",
			Labels:          map[string]string{clusterv1.ClusterNameLabel: name, clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterKind)},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: name, Version: "v1.36.3",
			Bootstrap: clusterv1.Bootstrap{DataSecretName: new(string)},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io",
				Kind:     "TestMachine", Name: name,
			},
		},
	}
	if err := c.Create(ctx, machine); err != nil {
		t.Fatal(err)
	}
	machine.Status.NodeRef.Name = name + "-node"
	machine.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: "False", Reason: "NotReady", Message: "* NodeHealthy: no kubelet",
		LastTransitionTime: now,
	}}
	if err := c.Status().Update(ctx, machine); err != nil {
		t.Fatal(err)
	}
}

func TestClusters(t *testing.T) {
	m, c, source := newManagement(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := m.Install(ctx, source, InstallOptions{Providers: resolve(t, source, allProviders)}); err != nil {
		t.Fatal(err)
	}
	newCluster(t, c, "team-b", "beta")
	newCluster(t, c, "team-a", "alpha")
	clusters, err := m.Clusters(ctx)
	if err != nil || len(clusters) != 2 {
		t.Fatalf("%v, %v", clusters, err)
	}
	alpha := clusters[0]
	if alpha.Key().String() != "team-a/alpha" || !alpha.Available || alpha.Infrastructure != "TestCluster" || len(alpha.Machines) != 1 {
		t.Errorf("got %+v", alpha)
	}
	if got := alpha.Machines[0]; got.Node != "alpha-node" || !got.ControlPlane || got.Ready ||
		got.Reason != "NotReady: NodeHealthy: no kubelet" {
		t.Errorf("got %+v", got)
	}
	if err := m.WaitAvailable(ctx, nil, nil); err != nil {
		t.Error(err)
	}
	short, cancelShort := context.WithTimeout(ctx, time.Second)
	defer cancelShort()
	err = m.WaitAvailable(short, []kube.Key{alpha.Key(), {Namespace: "team-a", Name: "absent"}}, nil)
	var unready kube.NotReadyError
	if !errors.As(err, &unready) || len(unready) != 1 || unready[0].Name != "absent" || diag.Code(err) != diag.ExitNotReady {
		t.Errorf("got %v", err)
	}
	t.Run("kubeconfig", func(t *testing.T) {
		if _, err := m.WorkloadKubeconfig(ctx, alpha.Key()); !kube.IsAbsent(err) || !strings.Contains(err.Error(), "team-a/alpha") {
			t.Errorf("got %v", err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "alpha-kubeconfig"},
			Data:       map[string][]byte{"value": []byte("config")},
		}
		if err := c.Create(ctx, secret); err != nil {
			t.Fatal(err)
		}
		if got, err := m.WorkloadKubeconfig(ctx, alpha.Key()); err != nil || string(got) != "config" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("taken over", func(t *testing.T) { takenOver(ctx, t, m, c, alpha.Key()) })
	t.Run("delete", func(t *testing.T) { deleteClusters(ctx, t, m, c) })
}

// takenOver: the controllers of a management cluster that takes a Cluster over first write what the earlier ones found, with the new
// generation. Then they connect to the workload cluster, and find it not Available for a moment. Only after that it is Available for good.
func takenOver(ctx context.Context, t *testing.T, m *Manager, c *kube.Client, key kube.Key) {
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, cluster); err != nil {
		t.Fatal(err)
	}
	before := cluster.Generation
	for _, paused := range []bool{true, false} { // a hand-over pauses it, and takes the pause off
		cluster.Spec.Paused = &paused
		if err := c.Update(ctx, cluster); err != nil {
			t.Fatal(err)
		}
	}
	write := func(available metav1.ConditionStatus, probed int64) {
		t.Helper()
		condition := func(name string, status metav1.ConditionStatus, seen int64) metav1.Condition {
			return metav1.Condition{Type: name, Status: status, Reason: "Seen", LastTransitionTime: metav1.Now(), ObservedGeneration: seen}
		}
		cluster.Status.Conditions = []metav1.Condition{
			condition("Available", available, cluster.Generation), condition("RemoteConnectionProbe", metav1.ConditionTrue, probed),
		}
		if err := c.Status().Update(ctx, cluster); err != nil {
			t.Error(err)
		}
	}
	write(metav1.ConditionTrue, before)
	var told []string
	next := []func(){
		func() { write(metav1.ConditionUnknown, before) },
		func() { write(metav1.ConditionUnknown, cluster.Generation) },
	}
	err := m.WaitAvailable(ctx, []kube.Key{key}, func(detail string) {
		if told = append(told, detail); len(told) <= len(next) {
			next[len(told)-1]()
		}
		if len(told) == len(next) {
			write(metav1.ConditionTrue, cluster.Generation)
		}
	})
	if err != nil || len(told) != len(next) || !strings.Contains(told[0], "has not connected to it yet") {
		t.Errorf("it waited for %q: %v", told, err)
	}
}

// deleteClusters deletes one Cluster that a finalizer holds, and one without a finalizer.
func deleteClusters(ctx context.Context, t *testing.T, m *Manager, c *kube.Client) {
	held := &clusterv1.Cluster{}
	if err := c.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, held); err != nil {
		t.Fatal(err)
	}
	held.Finalizers = []string{"fleetctl.dev/test"}
	if err := c.Update(ctx, held); err != nil {
		t.Fatal(err)
	}
	keys := []kube.Key{{Namespace: "team-a", Name: "alpha"}, {Namespace: "team-b", Name: "beta"}, {Namespace: "team-b", Name: "absent"}}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := m.DeleteClusters(short, keys, nil)
	var left kube.NotReadyError
	if !errors.As(err, &left) || len(left) != 1 || left[0].Name != "alpha" {
		t.Fatalf("got %v; want only alpha to be left", err)
	}
	go func() {
		_ = c.Patch(ctx, held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	}()
	var details []string
	if err := m.DeleteClusters(ctx, keys, func(s string) { details = append(details, s) }); err != nil {
		t.Errorf("%v (%v)", err, details)
	}
}
