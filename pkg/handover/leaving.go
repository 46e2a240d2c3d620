package handover

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// newLoser returns a tester of what the source says when the graph's objects leave it: each is changed, and then deleted.
// After the commit, a source that refuses this keeps its fence until somebody changes its policies.
func (s *side) newLoser(graph *capi.Graph) *tester {
	return s.newTester(graph, admissionv1.Update, admissionv1.Delete)
}

// part tries to change and to delete what leaves the source. It changes and deletes nothing.
func (t *tester) part(ctx context.Context) error {
	if err := t.prepare(ctx); err != nil || len(t.foreign) == 0 {
		return err
	}
	as, err := t.as()
	if err != nil {
		return err
	}
	manager, err := t.side.manager.As(as)
	if err != nil {
		return err
	}
	return kube.Each(webhookProbes, leaving(t.graph), func(obj *unstructured.Unstructured) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.try(ctx, obj, admissionv1.Update, manager.TryRelease); err != nil {
			return err
		}
		return t.try(ctx, obj, admissionv1.Delete, manager.TryDelete)
	})
}

// leaving returns the objects that a hand-over of the graph removes from the source.
func leaving(graph *capi.Graph) []*unstructured.Unstructured {
	objects := slices.Clone(graph.Leave)
	for _, item := range graph.Items {
		if !item.Stays {
			objects = append(objects, item.Unstructured)
		}
	}
	return objects
}

// try does an operation on an object in a dry run, if a gate is asked about it.
func (t *tester) try(
	ctx context.Context, obj *unstructured.Unstructured, operation admissionv1.OperationType,
	do func(context.Context, *unstructured.Unstructured) error,
) error {
	c, ref := t.requestOn(obj, operation), kube.RefOf(obj)
	foreign := t.asked(t.foreign, c)
	if len(foreign) == 0 || t.isDeaf(slices.Concat(foreign, t.asked(t.own, c)), c, ref) {
		return nil
	}
	return t.judge(ctx, ref, c, kube.Retry(ctx, func(ctx context.Context) error { return do(ctx, obj) }))
}
