package flux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// pausedWithAnnotation marks an object that SetSuspendedBelow has suspended, with the Kustomization that it was suspended for. So objects
// that were suspended before stay so when that Kustomization is resumed.
const pausedWithAnnotation = "fleetctl.dev/paused-with"

// SetSuspendedBelow is SetSuspended for the objects of Flux that a Kustomization has applied on this cluster, and for those that these have
// applied. It returns the objects that are, or were, suspended. It resumes only those that it has suspended itself, and leaves alone those
// that except holds. A Kustomization that is reconciling while it is suspended can make further objects, so SetSuspendedBelow looks again
// until there are none.
func (s *System) SetSuspendedBelow(
	ctx context.Context, top kube.Key, suspended bool, except func(kube.Ref) bool,
) ([]Switched, error) {
	var all []Switched
	told := map[kube.Ref]bool{}
	for range suspendRounds {
		done, err := s.switchBelow(ctx, top, suspended, except)
		changed := false
		for _, d := range done {
			if !told[d.Ref] {
				all, told[d.Ref] = append(all, d), true
			}
			changed = changed || d.Changed
		}
		if err != nil || !changed || !suspended {
			return all, err
		}
	}
	return all, nil
}

func (s *System) switchBelow(ctx context.Context, top kube.Key, suspended bool, except func(kube.Ref) bool) ([]Switched, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at what Kustomization %s has applied: %w", top, err)
	}
	refs := w.appliedBelow(top)
	done, errs := make([]Switched, len(refs)), make([]error, len(refs))
	var group errgroup.Group
	group.SetLimit(parallelism)
	for i, ref := range refs {
		obj := w[ref.GroupVersionKind][ref.Key]
		was, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
		done[i] = Switched{Ref: ref, InGit: was && suspendedInGit(obj), Below: true}
		ours := obj.GetAnnotations()[pausedWithAnnotation] == top.String()
		if except(ref) || was && suspended || !suspended && !ours {
			done[i].Absent = !was // there is nothing to tell of it
			continue
		}
		group.Go(func() error {
			change := pausedWith(true, top.String())
			if !suspended {
				change = pausedWith(nil, nil)
			}
			if errs[i] = s.patch(ctx, ref, change); errs[i] == nil && !suspended {
				errs[i] = s.request(ctx, ref)
			}
			done[i].Changed, done[i].Absent = errs[i] == nil, gone(errs[i])
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, so that all objects are tried
	var all []Switched
	var failed []error
	for i := range refs {
		switch {
		case done[i].Absent:
		case errs[i] != nil:
			failed = append(failed, fmt.Errorf("change %s: %w", refs[i], errs[i]))
		default:
			all = append(all, done[i])
		}
	}
	return all, errors.Join(failed...)
}

func pausedWith(suspend, mark any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{pausedWithAnnotation: mark}},
		"spec":     map[string]any{"suspend": suspend},
	}
}

// appliedBelow lists the objects that a Kustomization has applied here, and those that these have applied: Kustomizations before what they
// have applied.
func (w world) appliedBelow(top kube.Key) []kube.Ref {
	by := map[kube.Key][]kube.Ref{}
	for _, gvk := range append(workers(), append(sourceKinds(), helmChartKind)...) {
		for _, ref := range w.refs(gvk) {
			labels := w[gvk][ref.Key].GetLabels()
			owner := kube.Key{Namespace: labels[appliedFrom], Name: labels[AppliedBy]}
			by[owner] = append(by[owner], ref)
		}
	}
	var refs []kube.Ref
	seen := map[kube.Key]bool{top: true}
	for at := []kube.Key{top}; len(at) > 0; at = at[1:] {
		for _, ref := range by[at[0]] {
			if ref.GroupVersionKind == kustomizationKind {
				if seen[ref.Key] {
					continue
				}
				seen[ref.Key], at = true, append(at, ref.Key)
			}
			refs = append(refs, ref)
		}
	}
	return refs
}

// pauseMark begins the patches of a paused environment; see scaffold.PausePatches.
const pauseMark = "# From fleetctl environment pause;"

// pauses tells whether a Kustomization has the patches of a paused environment.
func pauses(kustomization *unstructured.Unstructured) bool {
	patches, _, _ := unstructured.NestedSlice(kustomization.Object, "spec", "patches")
	return slices.ContainsFunc(patches, func(p any) bool {
		fields, _ := p.(map[string]any)
		text, _ := fields["patch"].(string)
		return strings.HasPrefix(text, pauseMark)
	})
}

// pausedWith is the Kustomization with which a suspended object was paused: the one that SetSuspendedBelow has noted, or the nearest above
// the object that pauses what it applies.
func (w world) pausedWith(obj *unstructured.Unstructured) kube.Key {
	if namespace, name, ok := strings.Cut(obj.GetAnnotations()[pausedWithAnnotation], "/"); ok {
		return kube.Key{Namespace: namespace, Name: name}
	}
	seen := map[kube.Key]bool{}
	for at := KustomizationOf(obj); at != (kube.Key{}) && !seen[at]; {
		seen[at] = true
		above := w[kustomizationKind][at]
		switch {
		case above == nil:
			return kube.Key{}
		case pauses(above):
			return at
		}
		at = KustomizationOf(above)
	}
	return kube.Key{}
}
