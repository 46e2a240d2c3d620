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

// pruneAnnotation keeps Flux from deleting an object that it finds no more in what it applies.
const pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"

// WouldDelete lists what the sync flux-system applied to this cluster, by itself and through the Kustomizations that it made, and keep does not
// want: what Flux deletes when it is pointed elsewhere. It is sorted. What works on other clusters is listed by the Kustomization that does.
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

// entryRef reads an entry of an inventory, <namespace>_<name>_<group>_<kind> with a version beside it. A colon in the name of an RBAC object is
// written as two underscores.
func entryRef(entry kustomizev1.ResourceRef) (kube.Ref, error) {
	parts := strings.Split(entry.ID, "_")
	if len(parts) < 4 {
		return kube.Ref{}, fmt.Errorf("%.200q is no object", entry.ID)
	}
	last := len(parts) - 1
	return kube.Ref{
		GroupVersionKind: schema.GroupVersionKind{Group: parts[last-1], Version: entry.Version, Kind: parts[last]},
		Key:              kube.Key{Namespace: parts[0], Name: strings.ReplaceAll(strings.Join(parts[1:last-1], "_"), "__", ":")},
	}, nil
}

// Spare keeps Flux from deleting objects, whatever it is pointed at: each is annotated for it, and what among them works on others
// (Kustomizations and HelmReleases) is suspended, because its source changes under it. What is gone meanwhile is no error.
func (s *System) Spare(ctx context.Context, refs []kube.Ref) error {
	return kube.Each(parallelism, refs, func(ref kube.Ref) error {
		annotations := map[string]any{pruneAnnotation: kustomizev1.DisabledValue}
		change := map[string]any{"metadata": map[string]any{"annotations": annotations}}
		if ref.Group == kustomizationKind.Group || ref.Group == helmReleaseKind.Group {
			change["spec"] = map[string]any{"suspend": true}
			annotations[suspendedAnnotation] = nil // not for Resume
		}
		if err := s.patch(ctx, ref, change); err != nil && !kube.IsAbsent(err) {
			return fmt.Errorf("keep %s from being deleted: %w", ref, err)
		}
		return nil
	})
}

// WithoutPrune is the content of gotk-sync.yaml with a Kustomization that deletes nothing. What Flux then applies turns pruning on again, when
// its inventory has become that of the fleet repo.
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
