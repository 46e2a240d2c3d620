package graph

import (
	"context"
	"crypto/rand"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// mostOfBatch bounds how many objects one request deletes. The API server deletes them one after the other, and has to answer in time.
const mostOfBatch = 25

// batchLabel is on an object without finalizers that is about to be deleted. Its value is of one batch of one run.
const batchLabel = "fleetctl.dev/handover-batch"

// batches divides objects into batches that are removed at the same time. A batch has one object, or several of one kind and namespace that
// have finalizers: these are written before their deletion anyway, and this write can mark them. There are enough batches to keep all
// workers busy.
func batches(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	type place struct {
		schema.GroupVersionKind

		namespace string
	}
	var all [][]*unstructured.Unstructured
	var places []place
	held := map[place][]*unstructured.Unstructured{}
	most := 0
	for _, obj := range objects {
		if len(obj.GetFinalizers()) == 0 {
			all = append(all, []*unstructured.Unstructured{obj})
			continue
		}
		at := place{obj.GroupVersionKind(), obj.GetNamespace()}
		if held[at] == nil {
			places = append(places, at)
		}
		held[at] = append(held[at], obj)
		most++
	}
	most = min(max(most/parallelism, 2), mostOfBatch)
	for _, at := range places {
		for left := held[at]; len(left) > 0; {
			n := min(most, len(left))
			all = append(all, left[:n])
			left = left[n:]
		}
	}
	return all
}

// removeBatch removes the objects of one batch. It writes each by its UID, without its finalizers and with a label of this batch, and then
// deletes by this label. So it deletes only objects that it has just written. If the API server cannot do that, removeBatch deletes the
// objects one by one.
func (m *Members) removeBatch(ctx context.Context, batch []*unstructured.Unstructured) error {
	if len(batch) == 1 {
		return m.removeOne(ctx, batch[0])
	}
	label := map[string]string{batchLabel: rand.Text()}
	var marked []*unstructured.Unstructured
	var errs []error
	for _, obj := range batch {
		err := m.letGo(ctx, obj, label)
		switch {
		case err == nil:
			marked = append(marked, obj)
		case !errors.Is(err, errAnother):
			errs = append(errs, err)
		}
	}
	if len(marked) == 0 {
		return errors.Join(errs...)
	}
	err := kube.Retry(ctx, func(ctx context.Context) error {
		return m.kube.DeleteAllOf(ctx, named(marked[0]), client.InNamespace(marked[0].GetNamespace()), client.MatchingLabels(label),
			client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	if err != nil {
		for _, obj := range marked {
			errs = append(errs, m.deleteAs(ctx, obj, ""))
		}
	}
	return errors.Join(errs...)
}
