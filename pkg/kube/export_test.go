//go:build integration

package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WaitGone is waitGone for an object with any UID.
func WaitGone(ctx context.Context, c *Client, gvk schema.GroupVersionKind, key Key) error {
	return c.waitGone(ctx, Ref{gvk, key}, "")
}
