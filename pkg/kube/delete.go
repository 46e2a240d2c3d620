package kube

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteOptions of Delete.
type DeleteOptions struct {
	// Wait returns only when the objects are gone, finalizers included.
	Wait bool
	// Detail, if not nil, is told what is going on.
	Detail func(string)
}

// Delete removes objects in the reverse order of Apply's stages, each stage side by side. What is absent already is no
// error. All objects of a stage are tried; the error joins what went wrong. Of an object with a UID only that one is waited for: another one
// of its name, which somebody has made since, is there to stay.
func (c *Client) Delete(ctx context.Context, objects []*unstructured.Unstructured, opts DeleteOptions) error {
	stages := stagesOf(objects)
	slices.Reverse(stages)
	for _, s := range stages {
		if len(s.indices) == 0 {
			continue
		}
		if opts.Detail != nil {
			opts.Detail(fmt.Sprintf("deleting %d %s", len(s.indices), s.name))
		}
		if err := Each(parallelism, s.indices, func(i int) error { return c.deleteOne(ctx, objects[i], opts) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) deleteOne(ctx context.Context, obj *unstructured.Unstructured, opts DeleteOptions) error {
	ref := RefOf(obj)
	err := retryTransient(ctx, func(ctx context.Context) error {
		return c.WithWatch.Delete(ctx, obj.DeepCopy(), client.PropagationPolicy("Background"))
	})
	if err != nil && !IsAbsent(err) {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	if err == nil && opts.Wait {
		return c.waitGone(ctx, ref, obj.GetUID())
	}
	return nil
}
