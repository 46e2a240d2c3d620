package kube

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListLabelled lists the objects of all kinds with the labels: cluster-wide objects, and objects in namespaces. It leaves out kinds for
// which skip is true, kinds that cannot be listed and deleted, and kinds of an aggregated API server that does not answer.
func (c *Client) ListLabelled(ctx context.Context, labels map[string]string, namespaces []string, skip func(schema.GroupKind) bool) ([]unstructured.Unstructured, error) {
	resources, err := c.discovery.ServerPreferredResources()
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

// kindAt is a kind in one namespace; "" for a cluster-wide kind.
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
func (c *Client) ListKind(ctx context.Context, kind schema.GroupVersionKind, opts ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := Retry(ctx, func(ctx context.Context) error { return c.List(ctx, list, opts...) })
	if IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
	}
	return list.Items, nil
}
