package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WaitEstablished waits until the API server serves all the named CRDs. First it looks into the list of what is served, which is one small
// answer for all of them; a watch would bring each whole CRD, and again with every change of its status.
func (c *Client) WaitEstablished(ctx context.Context, names ...string) error {
	left, err := c.awaitServed(ctx, names)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for _, name := range left {
		group.Go(func() error { return c.waitEstablished(ctx, name) })
	}
	return group.Wait()
}

// awaitServed waits a while until the API server lists the resources of the named CRDs, and returns the names of those that it still does not.
func (c *Client) awaitServed(ctx context.Context, names []string) (left []string, err error) {
	left = slices.Clone(names)
	if len(left) == 0 {
		return nil, nil
	}
	err = wait.PollUntilContextTimeout(ctx, servedPoll, establishTime, true, func(context.Context) (bool, error) {
		_, resources, _, err := c.discovery.GroupsAndMaybeResources()
		if err != nil {
			return false, nil //nolint:nilerr // a server that answers badly is one to ask again; the watch says what is wrong
		}
		served := map[string]bool{}
		for gv, list := range resources {
			for _, r := range list.APIResources {
				served[r.Name+"."+gv.Group] = true
			}
		}
		left = slices.DeleteFunc(left, func(name string) bool { return served[name] })
		return len(left) == 0, nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && !wait.Interrupted(err) {
		return nil, err
	}
	return left, nil
}

const (
	// servedPoll is the pause between two looks at what is served.
	servedPoll = 100 * time.Millisecond
	// establishTime is how long a CRD may take until it is touched for the first time, and twice as long each further time. It is
	// mostly a fraction of a second.
	establishTime = 5 * time.Second
	// touchAnnotation makes a change of a CRD that changes nothing.
	touchAnnotation = "fleetctl.dev/touched"
)

var errNotEstablished = errors.New("it is not established")

// waitEstablished touches the CRD now and then while it waits: an API server that is killed after it has accepted the names of a CRD
// and before it has established it, forgets to do so after its restart, until the CRD changes (the establishing controller of
// k8s.io/apiextensions-apiserver is told of updates only). A server that does not even say how the CRD is, in that time, is busy: each
// touch would give it more to do.
func (c *Client) waitEstablished(ctx context.Context, name string) error {
	for patience := establishTime; ; patience *= 2 {
		seen, err := c.established(ctx, name, patience)
		if ctx.Err() != nil || !errors.Is(err, errNotEstablished) {
			return err
		}
		if !seen {
			continue
		}
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(crdGroupKind.WithVersion("v1"))
		crd.SetName(name)
		touch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, touchAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
		if err := c.Patch(ctx, crd, client.RawPatch(types.MergePatchType, touch), client.FieldOwner(FieldManager)); err != nil && !IsAbsent(err) {
			return fmt.Errorf("touch CRD %s: %w", name, err)
		}
	}
}

// established waits for a while until the API server serves a CRD, and tells whether it has seen the CRD at all.
func (c *Client) established(ctx context.Context, name string, patience time.Duration) (seen bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNotEstablished)
	defer cancel()
	err = c.WaitFor(ctx, crdGroupKind.WithVersion("v1"), Key{Name: name}, func(crd *unstructured.Unstructured) (bool, error) {
		seen = seen || crd != nil
		return crd != nil && conditionStatus(crd, "Established") == metav1.ConditionTrue, nil
	})
	if err != nil && errors.Is(context.Cause(ctx), errNotEstablished) { // on a busy machine in the middle of a request, whose error this is
		return seen, errNotEstablished
	}
	return seen, err
}
