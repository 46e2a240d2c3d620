package graph

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Unsettled describes the objects of the graph that are being made. A pause would interrupt their controller, and resources that it has
// already made in a cloud may be recorded nowhere.
func (g *Graph) Unsettled() []string {
	var waits []string
	for _, item := range append(g.OfKind(clusterGroupKind.Kind), g.OfKind("Machine")...) {
		waits = append(waits, InTheMaking(item.Unstructured)...)
	}
	return waits
}

// InTheMaking describes what a Cluster or a Machine still lacks while it is being made.
func InTheMaking(obj *unstructured.Unstructured) []string {
	if obj.GetKind() == "Machine" {
		if node, _, _ := unstructured.NestedString(obj.Object, "status", "nodeRef", "name"); node == "" {
			return []string{kube.RefOf(obj).String() + " has no node yet"}
		}
		return nil
	}
	if made, _, _ := unstructured.NestedBool(obj.Object, "status", "initialization", "infrastructureProvisioned"); !made {
		return []string{"the infrastructure of " + kube.RefOf(obj).String() + " is not provisioned yet"}
	}
	if isTrue(obj, clusterv1.ClusterControlPlaneInitializedCondition) {
		return nil
	}
	return []string{"the control plane of " + kube.RefOf(obj).String() + " is not initialized yet"}
}

// WaitSettled waits until none of the graph's Clusters and Machines is being made.
func (m *Members) WaitSettled(ctx context.Context, graph *Graph) error {
	wanted := map[kube.Key]bool{}
	for _, item := range graph.OfKind(clusterGroupKind.Kind) {
		wanted[item.Ref().Key] = true
	}
	settled := func(objects kube.Objects) (bool, error) {
		for key, obj := range objects {
			cluster := key
			if obj.GetKind() == "Machine" {
				cluster.Name = obj.GetLabels()[clusterv1.ClusterNameLabel]
			}
			if wanted[cluster] && len(InTheMaking(obj)) > 0 {
				return false, nil
			}
		}
		return true, nil
	}
	if err := m.kube.Watch(ctx, clusterKind, kube.Selection{}, settled); err != nil {
		return err
	}
	return m.kube.Watch(ctx, clusterv1.GroupVersion.WithKind("Machine"), kube.Selection{}, settled)
}
