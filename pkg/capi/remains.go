package capi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Remain is an object of a Cluster that still exists although the Cluster is being deleted.
type Remain struct {
	kube.Ref
	// Cluster is the Cluster of the object.
	Cluster kube.Key
	// CloudID has the provider's IDs of the object's resources in the cloud, or "" if the object does not have any.
	CloudID string
	// Finalizers are the finalizers that hold the object.
	Finalizers []string
}

// String describes the object with its Cluster, its cloud ID and its finalizers.
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

// Remains returns the objects of Cluster API and its providers that have the label of one of the Clusters, and that are being deleted or
// have a resource in a cloud. In case of an error it also returns the objects that it has found.
func (m *Manager) Remains(ctx context.Context, clusters []kube.Key) ([]Remain, error) {
	var all []Remain
	var errs []error
	for _, key := range clusters {
		objects, err := m.kube.ListLabelled(ctx, map[string]string{clusterv1.ClusterNameLabel: key.Name}, []string{key.Namespace}, notOfCluster)
		if err != nil {
			errs = append(errs, fmt.Errorf("list the objects of Cluster %s: %w", key, err))
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

// notOfCluster tells whether objects of a kind never have a resource in a cloud, such as events and built-in kinds. The objects of Azure's
// service operator, which the Azure provider makes, have resources.
func notOfCluster(kind schema.GroupKind) bool {
	return !strings.Contains(kind.Group, "cluster.x-k8s.io") && !strings.HasSuffix(kind.Group, ".azure.com")
}
