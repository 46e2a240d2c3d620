package capi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Remain is an object of a Cluster that is being deleted and is there still.
type Remain struct {
	kube.Ref
	// Cluster that it belongs to.
	Cluster kube.Key
	// CloudID is the provider's name for the object's resource in the cloud; "" if the object does not say.
	CloudID string
	// Finalizers are what the object waits for.
	Finalizers []string
}

// String is the object for people to read, with its Cluster, its cloud id and what holds it.
func (r Remain) String() string {
	text := fmt.Sprintf("%s of cluster %s", r.Ref, r.Cluster)
	if r.CloudID != "" {
		text += ", in the cloud " + r.CloudID
	}
	if len(r.Finalizers) > 0 {
		text += ", held by " + strings.Join(r.Finalizers, ", ")
	}
	return text
}

// Remains lists the objects of Cluster API and its providers that carry the label of one of the Clusters, and that are being deleted or
// stand for a resource in a cloud. With an error it still returns the objects that it has found.
func (m *Manager) Remains(ctx context.Context, clusters []kube.Key) ([]Remain, error) {
	var all []Remain
	var errs []error
	for _, key := range clusters {
		objects, err := m.kube.ListLabelled(ctx, map[string]string{clusterv1.ClusterNameLabel: key.Name}, []string{key.Namespace}, notOfCluster)
		if err != nil {
			errs = append(errs, fmt.Errorf("list what Cluster %s has: %w", key, err))
		}
		for i := range objects {
			obj := &objects[i]
			r := Remain{Ref: kube.RefOf(obj), Cluster: key, CloudID: cloudID(obj), Finalizers: obj.GetFinalizers()}
			if obj.GetNamespace() == key.Namespace && (obj.GetDeletionTimestamp() != nil || r.CloudID != "") {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b Remain) int { return cmp.Compare(a.String(), b.String()) })
	return all, errors.Join(errs...)
}

// notOfCluster leaves out the kinds that stand for nothing in a cloud: events and Kubernetes' own.
func notOfCluster(kind schema.GroupKind) bool {
	return !strings.Contains(kind.Group, "cluster.x-k8s.io")
}

// cloudID is the provider's name for an object's resource in the cloud, if the object has it in one of the fields that Cluster API's
// contracts and providers use.
func cloudID(obj *unstructured.Unstructured) string {
	for _, path := range [][]string{{"spec", "providerID"}, {"spec", "network", "vpc", "id"}, {"spec", "instanceID"}} {
		if id, _, _ := unstructured.NestedString(obj.Object, path...); id != "" {
			return id
		}
	}
	return ""
}
