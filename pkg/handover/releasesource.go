package handover

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// releaseSource removes the objects that were handed over from the source, and takes the fence down.
// copied are the UIDs of the objects that have a copy at the target.
func (r *run) releaseSource(ctx context.Context, copied map[types.UID]bool) error {
	fenced, err := r.source.isFenced(ctx)
	if err != nil {
		return err
	}
	if fenced { // without the fence, an earlier run has removed everything, and later objects of the source must stay
		objects, err := r.leftAtSource(ctx, copied)
		if err != nil {
			return err
		}
		if err := r.source.manager.Remove(ctx, objects, r.count(PhaseReleased, "removing what was handed over from "+r.source.Name)); err != nil {
			return err
		}
		if err := r.nothingLeft(ctx, objects); err != nil {
			return err
		}
	}
	return r.unfence(ctx, r.source)
}

// nothingLeft returns an error if objects removed from the source still exist. The fence must not come down before.
func (r *run) nothingLeft(ctx context.Context, removed []*unstructured.Unstructured) error {
	left, err := r.source.manager.Remaining(ctx, removed)
	if err != nil || len(left) == 0 {
		return err
	}
	return diag.Errorf("run the same command again", "%d of the objects handed over are still at %s: %s is one of them", len(left),
		r.source.Name, kube.RefOf(left[0]))
}

// originals returns the UIDs that copies had at the source, without those of objects that stay there.
func originals(copies []*unstructured.Unstructured) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, c := range copies {
		a := c.GetAnnotations()
		if _, stays := a[capi.StaysMark]; !stays {
			uids[types.UID(a[capi.SourceMark])] = true
		}
	}
	return uids
}

// leftAtSource returns the objects at the source that were handed over: the objects with a copy at the target, and the
// objects that are linked to a Cluster at the source. It needs both: an interrupted removal leaves objects without
// links, and the target's controllers may have replaced copies since.
func (r *run) leftAtSource(ctx context.Context, copied map[types.UID]bool) ([]*unstructured.Unstructured, error) {
	uids := maps.Clone(copied)
	graph := r.behind
	if graph == nil {
		var err error
		if graph, err = r.source.manager.Graph(ctx, r.graphOptions()); err != nil {
			return nil, err
		}
	}
	for _, item := range graph.Items {
		if !item.Shared {
			uids[item.GetUID()] = true
		}
	}
	for _, obj := range graph.Leave {
		uids[obj.GetUID()] = true
	}
	return graph.Among(uids), nil
}
