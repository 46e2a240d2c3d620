package flux

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// pruneAnnotation keeps Flux from deleting an object that is no longer in its source.
const pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"

// WouldDelete lists the objects that Flux would delete if flux-system got another source: the objects in this cluster that flux-system,
// and the Kustomizations that it made, have applied, except for those for which keep is true. The list is sorted. For objects in other
// clusters it has the Kustomization that applied them.
func (s *System) WouldDelete(ctx context.Context, keep func(kube.Ref) bool) ([]kube.Ref, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at what flux applied: %w", err)
	}
	found := map[kube.Ref]bool{}
	seen := map[kube.Key]bool{}
	var follow func(key kube.Key) error
	follow = func(key kube.Key) error {
		obj := w[kustomizationKind][key]
		if obj == nil || seen[key] {
			return nil
		}
		seen[key] = true
		var k kustomizev1.Kustomization
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &k); err != nil {
			return fmt.Errorf("read %s: %w", kube.RefOf(obj), err)
		}
		if k.Status.Inventory == nil || k.Spec.KubeConfig != nil {
			return nil
		}
		for _, entry := range k.Status.Inventory.Entries {
			ref, err := entryRef(entry)
			if err != nil {
				return fmt.Errorf("read the inventory of %s: %w", kube.RefOf(obj), err)
			}
			if !keep(ref) {
				found[ref] = true
			}
			if ref.Group == kustomizationKind.Group && ref.Kind == kustomizationKind.Kind {
				if err := follow(ref.Key); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := follow(systemKey); err != nil {
		return nil, err
	}
	refs := make([]kube.Ref, 0, len(found))
	for ref := range found {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b kube.Ref) int { return strings.Compare(a.String(), b.String()) })
	return refs, nil
}

// entryRef parses an entry of an inventory: an id, <namespace>_<name>_<group>_<kind>, and a version. In the id, a colon in the name of an
// RBAC object is two underscores.
func entryRef(entry kustomizev1.ResourceRef) (kube.Ref, error) {
	parts := strings.Split(entry.ID, "_")
	if len(parts) < 4 {
		return kube.Ref{}, fmt.Errorf("%.200q does not name an object", entry.ID)
	}
	last := len(parts) - 1
	return kube.Ref{
		GroupVersionKind: schema.GroupVersionKind{Group: parts[last-1], Version: entry.Version, Kind: parts[last]},
		Key:              kube.Key{Namespace: parts[0], Name: strings.ReplaceAll(strings.Join(parts[1:last-1], "_"), "__", ":")},
	}, nil
}

// Spare keeps Flux from deleting objects, even when its source changes. It annotates each object, and suspends Kustomizations and
// HelmReleases among them, because their source changes, too. It is no error if an object no longer exists.
func (s *System) Spare(ctx context.Context, refs []kube.Ref) error {
	return kube.Each(parallelism, refs, func(ref kube.Ref) error {
		annotations := map[string]any{pruneAnnotation: kustomizev1.DisabledValue}
		change := map[string]any{"metadata": map[string]any{"annotations": annotations}}
		if ref.Group == kustomizationKind.Group || ref.Group == helmReleaseKind.Group {
			change["spec"] = map[string]any{"suspend": true}
			annotations[suspendedAnnotation] = nil // so that Resume does not resume it
		}
		if err := s.patch(ctx, ref, change); err != nil && !kube.IsAbsent(err) {
			return fmt.Errorf("keep %s from being deleted: %w", ref, err)
		}
		return nil
	})
}

// WithoutPrune returns the content of gotk-sync.yaml with a Kustomization that does not prune. When Flux applies the fleet repo, which
// has the original file, it turns pruning on again. By then its inventory has the fleet repo's objects.
func WithoutPrune(sync []byte) ([]byte, error) {
	var out bytes.Buffer
	err := eachDocument(sync, func(doc []byte) error {
		var object struct{ Kind string }
		err := yaml.Unmarshal(doc, &object)
		if err == nil && object.Kind == kustomizev1.KustomizationKind {
			doc, err = rewrite(doc, func(k *kustomizev1.Kustomization) { k.Spec.Prune = false })
		}
		out.WriteString("---\n")
		out.Write(doc)
		return err
	})
	return out.Bytes(), err
}
