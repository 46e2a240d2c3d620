package graph

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"

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

// batch are objects that one request deletes.
type batch struct {
	label string // the value of batchLabel
	size  int

	mu     sync.Mutex
	seen   int
	marked []*unstructured.Unstructured // those that have the label
}

// note notes that an object was written, or that it cannot be. It returns all that are marked once it was the batch's last one.
func (b *batch) note(obj *unstructured.Unstructured, marked bool) (all []*unstructured.Unstructured, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen++
	if marked {
		b.marked = append(b.marked, obj)
	}
	return b.marked, b.seen == b.size
}

// removal is an object to remove, alone if batch is nil.
type removal struct {
	obj   *unstructured.Unstructured
	batch *batch
}

// removals divides objects into batches of one kind and namespace. Only objects that have finalizers are in batches: these are written
// before their deletion anyway, and this write can mark them. The others are removed alone. They come last, so that the other workers have
// something to do while one deletes the last batch.
func removals(objects []*unstructured.Unstructured) []removal {
	type place struct {
		schema.GroupVersionKind

		namespace string
	}
	var alone, all []removal
	var places []place
	held := map[place][]*unstructured.Unstructured{}
	most := 0
	for _, obj := range objects {
		if len(obj.GetFinalizers()) == 0 {
			alone = append(alone, removal{obj: obj})
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
		for some := range slices.Chunk(held[at], most) {
			var b *batch
			if len(some) > 1 {
				b = &batch{label: rand.Text(), size: len(some)}
			}
			for _, obj := range some {
				all = append(all, removal{obj, b})
			}
		}
	}
	return append(all, alone...)
}

// remove removes an object, or does its part for a batch: it writes the object by its UID, without its finalizers and with the label of
// the batch, and after the batch's last object it deletes all that have the label. So it deletes only objects that this run has just
// written. If the API server cannot do that, it deletes the objects one by one. remove returns how many objects are done.
func (m *Members) remove(ctx context.Context, r removal) (int, error) {
	if r.batch == nil {
		return 1, m.removeOne(ctx, r.obj)
	}
	label := map[string]string{batchLabel: r.batch.label}
	err := m.letGo(ctx, r.obj, label)
	marked, last := r.batch.note(r.obj, err == nil)
	if errors.Is(err, errAnother) {
		err = nil
	}
	if !last {
		return 0, err
	}
	if len(marked) == 0 {
		return r.batch.size, err
	}
	deleteErr := kube.Retry(ctx, func(ctx context.Context) error {
		return m.kube.DeleteAllOf(ctx, named(marked[0]), client.InNamespace(marked[0].GetNamespace()), client.MatchingLabels(label),
			client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	if deleteErr == nil {
		return r.batch.size, err
	}
	errs := []error{err}
	for _, obj := range marked {
		errs = append(errs, m.deleteAs(ctx, obj, ""))
	}
	return r.batch.size, errors.Join(errs...)
}
