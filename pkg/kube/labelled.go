package kube

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ListLabelled lists the objects of all kinds with the labels: the cluster-scoped objects, and those in namespaces. It leaves out kinds for
// which skip returns true, kinds that cannot be listed or deleted, and kinds of an aggregated API server that does not answer.
func (c *Client) ListLabelled(
	ctx context.Context,
	labels map[string]string,
	namespaces []string,
	skip func(schema.GroupKind) bool,
) ([]unstructured.Unstructured, error) {
	resources, err := promptly(ctx, c.Host(), c.discovery.ServerPreferredResources)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("list the API's resources: %w", err)
	}
	var kinds []kindAt
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, resources) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("list the API's resources: %w", err)
		}
		for i := range list.APIResources {
			kinds = append(kinds, kindsAt(gv, &list.APIResources[i], namespaces)...)
		}
	}
	kinds = slices.DeleteFunc(kinds, func(k kindAt) bool { return skip(k.GroupKind()) })
	found := make([][]unstructured.Unstructured, len(kinds))
	indices := make([]int, len(kinds))
	for i := range indices {
		indices[i] = i
	}
	err = Each(parallelism, indices, func(i int) (err error) {
		found[i], err = c.ListKind(ctx, kinds[i].GroupVersionKind, client.MatchingLabels(labels), client.InNamespace(kinds[i].namespace))
		return err
	})
	return slices.Concat(found...), err
}

// kindAt is a kind in one namespace. The namespace of a cluster-scoped kind is "".
type kindAt struct {
	schema.GroupVersionKind

	namespace string
}

func kindsAt(gv schema.GroupVersion, r *metav1.APIResource, namespaces []string) []kindAt {
	gvk := gv.WithKind(r.Kind)
	if !r.Namespaced {
		return []kindAt{{gvk, ""}}
	}
	var kinds []kindAt
	for _, namespace := range namespaces {
		kinds = append(kinds, kindAt{gvk, namespace})
	}
	return kinds
}

// ListKind lists the objects of a kind, and sets the kind of each. The list is empty if the API server does not know the kind.
func (c *Client) ListKind(
	ctx context.Context,
	kind schema.GroupVersionKind,
	opts ...client.ListOption,
) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	list := func() client.ObjectList { return &unstructured.UnstructuredList{} }
	err := c.eachOf(ctx, kind, list, opts, func(item runtime.Object) error {
		obj, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("unexpected list item %T", item)
		}
		obj.SetGroupVersionKind(kind)
		objects = append(objects, *obj)
		return nil
	})
	return objects, err
}

// ListMetadata lists the metadata of the objects of a kind for which is returns true, without managed fields. The API server does not send
// spec and status, which are most of the data. The list is empty if the API server does not know the kind.
func (c *Client) ListMetadata(
	ctx context.Context, kind schema.GroupVersionKind, is func(metav1.Object) bool, opts ...client.ListOption,
) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	list := func() client.ObjectList { return &metav1.PartialObjectMetadataList{} }
	err := c.eachOf(ctx, kind, list, opts, func(item runtime.Object) error {
		partial, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("unexpected list item %T", item)
		}
		if !is(partial) {
			return nil
		}
		partial.ManagedFields = nil
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(partial)
		if err != nil {
			return err
		}
		obj := &unstructured.Unstructured{Object: content}
		obj.SetGroupVersionKind(kind)
		objects = append(objects, obj)
		return nil
	})
	return objects, err
}

// eachOf lists the objects of a kind page by page, and then calls do for each. All objects show the state of the same moment. It calls do
// for no object if the API server does not know the kind.
func (c *Client) eachOf(
	ctx context.Context, kind schema.GroupVersionKind, list func() client.ObjectList, opts []client.ListOption, do func(runtime.Object) error,
) error {
	pages := pager.New(func(ctx context.Context, at metav1.ListOptions) (runtime.Object, error) {
		page := list()
		page.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := Retry(ctx, func(ctx context.Context) error {
			return c.List(ctx, page, append(slices.Clone(opts), client.Limit(at.Limit), client.Continue(at.Continue))...)
		})
		if err == nil && at.Continue != "" && page.GetContinue() == at.Continue {
			err = diag.Errorf("something else may answer at the address of the API server: check `server:` in the kubeconfig",
				"the list has no end: its page after %q is again the page after %[1]q", at.Continue)
		}
		return page, err
	})
	found, _, err := pages.List(inPages(ctx), metav1.ListOptions{})
	if IsAbsent(err) {
		return nil
	}
	if err == nil {
		err = meta.EachListItem(found, do)
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	return nil
}
