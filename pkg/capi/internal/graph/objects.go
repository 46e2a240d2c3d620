package graph

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Remaining returns the metadata of those objects that still exist.
func (m *Members) Remaining(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	uids, kinds := map[types.UID]bool{}, map[schema.GroupVersionKind]bool{}
	for _, obj := range objects {
		uids[obj.GetUID()], kinds[obj.GroupVersionKind()] = true, true
	}
	return m.metadataThat(ctx, slices.Collect(maps.Keys(kinds)), func(obj metav1.Object) bool { return uids[obj.GetUID()] })
}

// metadataThat returns the metadata of the objects of kinds for which is returns true, sorted by kind and name.
func (m *Members) metadataThat(
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

// InGroups returns all objects of the API groups in all namespaces, sorted by kind and name. For the core group, "", it returns Secrets and
// ConfigMaps.
func (m *Members) InGroups(ctx context.Context, groups ...string) ([]*unstructured.Unstructured, error) {
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
