package capi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Movable is how two management clusters stand to the hand-over of a graph.
type Movable struct {
	// Against is all that stands against it.
	Against []error
	// Waits is what is still in the making.
	Waits []string
	// Hold says that the target has Clusters of its own: its controllers cannot be stopped.
	Hold bool
	// Available are the Clusters that are, and Epoch is how many times the work has changed hands.
	Available []string
	Epoch     int64
}

// LookMovable looks at both sides and changes nothing.
func LookMovable(ctx context.Context, from, to *Manager, graph *Graph) (*Movable, error) {
	var there clusterv1.ClusterList
	var source, target []InstalledProvider
	group, readCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return to.listAll(readCtx, "Clusters at the target", &there) })
	group.Go(func() (err error) { source, err = from.Installed(readCtx); return err })
	group.Go(func() (err error) { target, err = to.Installed(readCtx); return err })
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("prepare the hand-over: %w", err)
	}
	m := &Movable{Hold: len(there.Items) > 0, Waits: unsettled(graph)}
	if err := providersFit(source, target); err != nil {
		m.Against = append(m.Against, err)
	}
	for _, item := range graph.OfKind(clusterGroupKind.Kind) {
		cluster := &clusterv1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, cluster); err != nil {
			return nil, fmt.Errorf("read %s: %w", item.Ref(), err)
		}
		if !cluster.DeletionTimestamp.IsZero() {
			m.Against = append(m.Against, fmt.Errorf("%s is being deleted", item.Ref()))
		}
		if isPaused(cluster) && len(unsettledObject(item.Unstructured)) > 0 {
			m.Against = append(m.Against, fmt.Errorf("%s is paused, and not made yet", item.Ref()))
		}
	}
	m.Available, m.Epoch = graph.Available(), graph.Epoch()
	return m, nil
}

// providersFit tells which providers of the source the target lacks, has in an older version, or that are not ready there.
func providersFit(source, target []InstalledProvider) error {
	var errs []error
	for _, p := range source {
		i := slices.IndexFunc(target, func(t InstalledProvider) bool { return t.Name == p.Name && t.Type == p.Type })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("the target has no %s", p.Provider))
		case compareVersions(target[i].Version, p.Version) < 0:
			errs = append(errs, fmt.Errorf("the target has %s, which is older than %s here", target[i].Provider, p.Version))
		case !target[i].Ready:
			errs = append(errs, fmt.Errorf("%s is not ready at the target: %s", target[i].Provider, target[i].Reason))
		}
	}
	if len(source) == 0 {
		errs = append(errs, errors.New("no provider is installed here"))
	}
	return errors.Join(errs...)
}

// unsettled names the objects of the graph that are being made. A pause would interrupt their controller halfway, and resources that exist
// in a cloud by then may be recorded nowhere.
func unsettled(graph *Graph) []string {
	var waits []string
	for _, item := range append(graph.OfKind(clusterGroupKind.Kind), graph.OfKind("Machine")...) {
		waits = append(waits, unsettledObject(item.Unstructured)...)
	}
	return waits
}

// unsettledObject says what of a Cluster or a Machine is in the making.
func unsettledObject(obj *unstructured.Unstructured) []string {
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

// WaitSettled waits until nothing of the graph's Clusters and Machines is in the making.
func (m *Manager) WaitSettled(ctx context.Context, graph *Graph) error {
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
			if wanted[cluster] && len(unsettledObject(obj)) > 0 {
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

// Owner is who manages a Cluster: on the management cluster it is an annotation on the Cluster.
type Owner struct {
	Fleet             string `json:"fleet"`
	ManagementCluster string `json:"managementCluster"`
	// UID of its namespace kube-system.
	UID string `json:"uid"`
	// Epoch is how many times the Cluster has changed hands.
	Epoch int64 `json:"epoch"`
}

// String is how it is written down.
func (o Owner) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	return string(text)
}

// OwnerOf reads the annotation of a Cluster; the zero value where there is none, or none that can be read.
func OwnerOf(cluster *unstructured.Unstructured) Owner {
	return OwnerIn(cluster.GetAnnotations())
}

// OwnerIn is OwnerOf for annotations that were read already.
func OwnerIn(annotations map[string]string) Owner {
	var o Owner
	if err := json.Unmarshal([]byte(annotations[OwnerMark]), &o); err != nil {
		return Owner{}
	}
	return o
}

// Remaining returns the metadata of those objects that still exist.
func (m *Manager) Remaining(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	uids, kinds := map[types.UID]bool{}, map[schema.GroupVersionKind]bool{}
	for _, obj := range objects {
		uids[obj.GetUID()], kinds[obj.GroupVersionKind()] = true, true
	}
	return m.metadataThat(ctx, slices.Collect(maps.Keys(kinds)), func(obj metav1.Object) bool { return uids[obj.GetUID()] })
}

// metadataThat is the metadata of the objects of kinds that is says so of, by kind and name.
func (m *Manager) metadataThat(
	ctx context.Context,
	kinds []schema.GroupVersionKind,
	is func(metav1.Object) bool,
) ([]*unstructured.Unstructured, error) {
	found := make([][]*unstructured.Unstructured, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i, kind := range kinds {
		group.Go(func() (err error) {
			found[i], err = m.kube.ListMetadata(ctx, kind, is)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return byRef(slices.Concat(found...)), nil
}

// byRef sorts objects by kind and name.
func byRef(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(kube.RefOf(a).String(), kube.RefOf(b).String())
	})
	return objects
}

// InGroups returns all objects of the API groups, in all namespaces, by kind and name. Of the core group, "", it returns the Secrets and
// ConfigMaps.
func (m *Manager) InGroups(ctx context.Context, groups ...string) ([]*unstructured.Unstructured, error) {
	kinds, err := m.heldKinds(ctx)
	if err != nil {
		return nil, err
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k *heldKind) bool { return !slices.Contains(groups, k.Group) })
	found, err := listKinds(ctx, m.kube, kinds)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, l := range found {
		for i := range l.objects {
			objects = append(objects, &l.objects[i])
		}
	}
	return byRef(objects), nil
}
