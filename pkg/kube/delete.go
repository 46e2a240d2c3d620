package kube

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// DeleteOptions are the options of Delete.
type DeleteOptions struct {
	// Wait means that Delete waits until the objects no longer exist, so also for their finalizers.
	Wait bool
	// Detail, if not nil, is called with each line of progress.
	Detail func(string)
}

// Delete deletes objects in the reverse order of Apply's stages, and the objects of a stage in parallel. A missing object is no error. If
// an object fails, Delete tries the others of its stage, and returns the joined errors. If an object has a UID, Delete waits only for the
// object with this UID, and not for a newer object of the same name.
func (c *Client) Delete(ctx context.Context, objects []*unstructured.Unstructured, opts DeleteOptions) error {
	stages := stagesOf(objects)
	slices.Reverse(stages)
	for _, s := range stages {
		if len(s.indices) == 0 {
			continue
		}
		if opts.Detail != nil {
			opts.Detail("deleting " + plain.Count(len(s.indices), s.name))
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
