package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind that an API server serves.
type Kind struct {
	schema.GroupVersionKind

	Namespaced bool
	// Custom means that the kind comes from a CRD or an aggregated API server.
	Custom bool
}

// Kinds returns all kinds whose objects can be listed and read, each in the API server's preferred version. It leaves out kinds of an
// aggregated API server that does not answer.
func (c *Client) Kinds(ctx context.Context) ([]Kind, error) {
	resources, err := promptly(ctx, c.Host(), c.discovery.ServerPreferredResources)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("list the API's resources: %w", err)
	}
	var kinds []Kind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get"}}, resources) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("list the API's resources: %w", err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			kinds = append(kinds, Kind{gv.WithKind(r.Kind), r.Namespaced, !isBuiltIn(gv.Group)})
		}
	}
	return kinds, nil
}

// KindError is the error of listing the objects of a kind.
type KindError struct {
	Kind Kind
	Err  error
}

// ListKinds lists the objects of kinds in parallel, in one namespace, or in all namespaces if namespace is "". If a kind fails, it lists
// the others. It returns a KindError for each failed kind.
func (c *Client) ListKinds(ctx context.Context, kinds []Kind, namespace string) ([]unstructured.Unstructured, []KindError) {
	type at struct {
		Kind
		objects []unstructured.Unstructured
	}
	all := make([]*at, 0, len(kinds))
	for _, k := range kinds {
		all = append(all, &at{Kind: k})
	}
	var mu sync.Mutex
	var failed []KindError
	_ = Each(parallelism, all, func(k *at) error { // failed has the errors
		var err error
		if k.objects, err = c.ListKind(ctx, k.GroupVersionKind, client.InNamespace(namespace)); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, KindError{k.Kind, err})
		}
		return nil
	})
	var objects []unstructured.Unstructured
	for _, k := range all {
		objects = append(objects, k.objects...)
	}
	slices.SortFunc(failed, func(a, b KindError) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return objects, failed
}

// Events returns the events of a namespace, or of all namespaces if namespace is "". The newest event is last.
func (c *Client) Events(ctx context.Context, namespace string) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return EventTime(&a).Compare(EventTime(&b)) })
	return list.Items, nil
}

// EventTime returns the time at which an event was last seen.
func EventTime(e *corev1.Event) time.Time { return eventTime(*e).Time }
