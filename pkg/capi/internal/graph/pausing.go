package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Pause pauses the graph's Clusters and ClusterClasses. The same write records the former value on each. It does not change an object that
// is already paused, so this object stays paused at the target. It returns the number of objects that it paused.
func (m *Members) Pause(ctx context.Context, graph *Graph) (int, error) {
	return m.patchEach(ctx, "pause", pausable(graph), func(obj *unstructured.Unstructured) map[string]any {
		_, annotated := obj.GetAnnotations()[clusterv1.PausedAnnotation]
		if obj.GetKind() == classGroupKind.Kind {
			if annotated {
				return nil
			}
			return map[string]any{"metadata": map[string]any{"annotations": map[string]any{clusterv1.PausedAnnotation: "", PausedMark: ""}}}
		}
		paused, found, _ := unstructured.NestedBool(obj.Object, "spec", "paused")
		if paused || annotated {
			return nil
		}
		before := ""
		if found {
			before = "false"
		}
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{PausedMark: before}},
			"spec":     map[string]any{"paused": true},
		}
	})
}

// pausedByOthers tells whether somebody other than a hand-over has paused a Cluster.
func pausedByOthers(obj *unstructured.Unstructured) bool {
	have := obj.GetAnnotations()
	if _, ours := have[PausedMark]; ours {
		return false
	}
	_, annotated := have[clusterv1.PausedAnnotation]
	_, held := have[HeldMark] // then the annotation is the hand-over's
	paused, _, _ := unstructured.NestedBool(obj.Object, "spec", "paused")
	return paused || annotated && !held
}

// Unpause restores the state before Pause on those objects that are Clusters or ClusterClasses. It also sets the owner annotation of the
// Clusters to owner, unless owner is "".
func (m *Members) Unpause(ctx context.Context, objects []*unstructured.Unstructured, owner string) error {
	_, err := m.patchEach(ctx, "unpause", objects, func(obj *unstructured.Unstructured) map[string]any { return unpaused(obj, owner) })
	return err
}

// unpaused returns the patch of Unpause for one object, or nil if there is nothing to change.
func unpaused(obj *unstructured.Unstructured, owner string) map[string]any {
	annotations, spec := map[string]any{}, map[string]any{}
	have := obj.GetAnnotations()
	if before, ours := have[PausedMark]; ours {
		annotations[PausedMark] = nil
		switch {
		case obj.GetKind() == classGroupKind.Kind:
			annotations[clusterv1.PausedAnnotation] = nil
		case before == "false":
			spec["paused"] = false
		default:
			spec["paused"] = nil
		}
	}
	if _, held := have[HeldMark]; held {
		annotations[HeldMark], annotations[clusterv1.PausedAnnotation] = nil, nil
	}
	if gk := obj.GroupVersionKind().GroupKind(); gk == clusterGroupKind && owner != "" && have[OwnerMark] != owner {
		annotations[OwnerMark] = owner
	}
	if len(annotations) == 0 {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return patch
}

func pausable(graph *Graph) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, item := range append(graph.OfKind(classGroupKind.Kind), graph.OfKind(clusterGroupKind.Kind)...) {
		if !item.Stays {
			objects = append(objects, item.Unstructured)
		}
	}
	return objects
}

// patchEach merges the patch that change returns into each object, in parallel, and returns the number of patches. It ignores objects that
// no longer exist.
func (m *Members) patchEach(
	ctx context.Context, verb string, objects []*unstructured.Unstructured, change func(*unstructured.Unstructured) map[string]any,
) (int, error) {
	changed := 0
	errs := make([]error, len(objects))
	var group errgroup.Group
	group.SetLimit(parallelism)
	for i, obj := range objects {
		patch := change(obj)
		if patch == nil {
			continue
		}
		data, err := json.Marshal(patch)
		if err != nil {
			return 0, err
		}
		changed++
		group.Go(func() error {
			err := kube.Retry(ctx, func(ctx context.Context) error {
				return m.kube.Patch(ctx, named(obj), client.RawPatch(types.MergePatchType, data), client.FieldOwner(kube.FieldManager), unchecked)
			})
			if err != nil && !kube.IsAbsent(err) {
				errs[i] = fmt.Errorf("%s %s: %w", verb, kube.RefOf(obj), err)
			}
			return nil
		})
	}
	_ = group.Wait() // errs has the errors, so that all objects are tried
	return changed, errors.Join(errs...)
}

// WaitMovable waits until none of the graph's objects has clusterctl's block-move annotation. Some providers need this time before they
// release paused objects.
func (m *Members) WaitMovable(ctx context.Context, graph *Graph, detail func(string)) error {
	blocked := map[*heldKind]map[kube.Key]bool{}
	for _, item := range graph.Items {
		if _, blocks := item.GetAnnotations()[clusterctlv1.BlockMoveAnnotation]; !blocks {
			continue
		}
		if blocked[item.kind] == nil {
			blocked[item.kind] = map[kube.Key]bool{}
		}
		blocked[item.kind][item.Ref().Key] = true
	}
	for kind, keys := range blocked {
		var left []string
		err := m.kube.Watch(ctx, kind.GroupVersionKind, kube.Selection{}, func(objects kube.Objects) (bool, error) {
			left = left[:0]
			for key := range keys {
				if obj := objects[key]; obj != nil {
					if _, blocks := obj.GetAnnotations()[clusterctlv1.BlockMoveAnnotation]; blocks {
						left = append(left, kind.Kind+" "+key.String())
					}
				}
			}
			if len(left) > 0 && detail != nil {
				detail(fmt.Sprintf("waiting until %s can be moved: %s", plain.Count(len(left), "object"), strings.Join(left[:min(3, len(left))], ", ")))
			}
			return len(left) == 0, nil
		})
		if err != nil {
			return fmt.Errorf("wait until %s can be moved: %w", strings.Join(left, ", "), err)
		}
	}
	return nil
}
