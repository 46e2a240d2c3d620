package flux

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	// letGoAnnotation marks objects that LetGo has suspended. Its value says whether the object was suspended before.
	letGoAnnotation = "fleetctl.dev/let-go"
	wasSuspended    = "was-suspended"
	// letGoFor names the cluster for which LetGo suspended the object, by its Secret kubeconfig, NAMESPACE/NAME. The object's namespace
	// does not tell it, because a HelmRelease may be in any namespace.
	letGoFor = "fleetctl.dev/let-go-for"
	// letGoReconcile has the value that reconcileAnnotation had before LetGo. It is absent if there was none.
	letGoReconcile = "fleetctl.dev/let-go-reconcile"

	reconcileAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"
)

// LetGo stops Flux's work for a workload cluster. It suspends the HelmRelease release, which makes the cluster, and the objects that work
// on the cluster through the Secret kubeconfig. An annotation keeps their Kustomization from resuming them; LetGo remembers the value that
// it had. Deleting a suspended object does not delete what it has made. LetGo returns the objects that it has suspended.
func (s *System) LetGo(ctx context.Context, release, kubeconfig kube.Key) ([]kube.Ref, error) {
	return s.toggle(ctx, "suspend", workers(), kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		if ref := kube.RefOf(obj); !worksOn(obj, kubeconfig) && (ref.GroupVersionKind != helmReleaseKind || ref.Key != release) {
			return nil
		}
		return lettingGo(obj, kubeconfig)
	})
}

// lettingGo is the patch of LetGo. Run again, it still says what was there before the first time.
func lettingGo(obj *unstructured.Unstructured, kubeconfig kube.Key) map[string]any {
	a := obj.GetAnnotations()
	before, is := a[letGoAnnotation]
	if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); !is && suspended {
		before = wasSuspended
	}
	marks := map[string]any{
		reconcileAnnotation: kustomizev1.DisabledValue, letGoAnnotation: cmp.Or(before, "true"), letGoFor: kubeconfig.String(),
	}
	if reconcile, set := a[reconcileAnnotation]; !is && set {
		marks[letGoReconcile] = reconcile
	}
	return map[string]any{"metadata": map[string]any{"annotations": marks}, "spec": map[string]any{"suspend": true}}
}

// SuspendedFor returns the HelmReleases and Kustomizations of a workload cluster that somebody has suspended, as LetGo would find them.
func (s *System) SuspendedFor(ctx context.Context, release, kubeconfig kube.Key) ([]kube.Ref, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at Flux: %w", err)
	}
	return suspendedIn(w, release, kubeconfig), nil
}

func suspendedIn(w world, release, kubeconfig kube.Key) []kube.Ref {
	var refs []kube.Ref
	for _, kind := range workers() {
		for _, ref := range w.refs(kind) {
			obj := w[kind][ref.Key]
			if !worksOn(obj, kubeconfig) && (kind != helmReleaseKind || ref.Key != release) {
				continue
			}
			suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
			before, letGo := obj.GetAnnotations()[letGoAnnotation]
			if suspended && (!letGo || before == wasSuspended) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// TakeBack undoes LetGo for the cluster of the Secret kubeconfig. Earlier releases did not note the cluster: of their objects, TakeBack
// takes all that are in the namespace.
func (s *System) TakeBack(ctx context.Context, namespace string, kubeconfig kube.Key) error {
	_, err := s.toggle(ctx, "resume", workers(), kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		if !isTakenBack(obj, namespace, kubeconfig) {
			return nil
		}
		return takingBack(obj)
	})
	return err
}

func isTakenBack(obj *unstructured.Unstructured, namespace string, kubeconfig kube.Key) bool {
	a := obj.GetAnnotations()
	_, is := a[letGoAnnotation]
	_, noted := a[letGoFor]
	return letGoOf(obj, kubeconfig) || is && !noted && obj.GetNamespace() == namespace
}

// takingBack is the patch of TakeBack. If somebody has changed the annotation that LetGo sets, their value stays.
func takingBack(obj *unstructured.Unstructured) map[string]any {
	a := obj.GetAnnotations()
	marks := map[string]any{letGoAnnotation: nil, letGoFor: nil, letGoReconcile: nil}
	if a[reconcileAnnotation] == kustomizev1.DisabledValue {
		marks[reconcileAnnotation] = nil
		if reconcile, was := a[letGoReconcile]; was {
			marks[reconcileAnnotation] = reconcile
		}
	}
	change := map[string]any{"metadata": map[string]any{"annotations": marks}}
	if a[letGoAnnotation] != wasSuspended {
		change["spec"] = map[string]any{"suspend": nil}
	}
	return change
}

// letGoOf tells whether LetGo has suspended obj for the cluster of the Secret kubeconfig.
func letGoOf(obj *unstructured.Unstructured, kubeconfig kube.Key) bool {
	a := obj.GetAnnotations()
	_, is := a[letGoAnnotation]
	return is && (a[letGoFor] == kubeconfig.String() || worksOn(obj, kubeconfig))
}

// letGo returns the objects that LetGo has suspended for the cluster of the Secret kubeconfig.
func (s *System) letGo(ctx context.Context, kubeconfig kube.Key) ([]*unstructured.Unstructured, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at Flux: %w", err)
	}
	return letGoIn(w, kubeconfig), nil
}

func letGoIn(w world, kubeconfig kube.Key) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, kind := range workers() {
		for _, obj := range w[kind] {
			if letGoOf(obj, kubeconfig) {
				objects = append(objects, obj)
			}
		}
	}
	return objects
}

// LetGoLeft returns those kubeconfigs for whose clusters there still are objects that LetGo has suspended.
func (s *System) LetGoLeft(ctx context.Context, kubeconfigs ...kube.Key) ([]kube.Key, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at Flux: %w", err)
	}
	var left []kube.Key
	for _, kubeconfig := range kubeconfigs {
		if len(letGoIn(w, kubeconfig)) > 0 {
			left = append(left, kubeconfig)
		}
	}
	return left, nil
}

// ForgetLetGo waits until no Kustomization applies the objects that LetGo has suspended, and then deletes them. They are still suspended,
// so the objects that they have made stay.
func (s *System) ForgetLetGo(ctx context.Context, kubeconfig kube.Key, detail func(string)) error {
	objects, err := s.letGo(ctx, kubeconfig)
	if err != nil {
		return err
	}
	marked := map[kube.Ref]bool{}
	for _, obj := range objects {
		ref := kube.RefOf(obj)
		if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); !suspended {
			return diag.Errorf("suspend it again, or delete it if you know what that removes", "%s was resumed after fleetctl had suspended it", ref)
		}
		marked[ref] = true
	}
	if len(objects) == 0 {
		return nil
	}
	if err := s.Reconcile(ctx); err != nil {
		return err
	}
	if err := s.waitNotApplied(ctx, marked, detail); err != nil {
		return err
	}
	return s.client.Delete(ctx, objects, kube.DeleteOptions{Wait: true})
}

// waitNotApplied waits until no Kustomization has any of the objects in its inventory.
func (s *System) waitNotApplied(ctx context.Context, objects map[kube.Ref]bool, detail func(string)) error {
	err := s.client.Watch(ctx, kustomizationKind, kube.Selection{}, func(kustomizations kube.Objects) (bool, error) {
		for key, k := range kustomizations {
			for _, id := range inventoryOf(k) {
				if ref, ok := inventoryRef(id); ok && objects[ref] {
					if detail != nil {
						detail(fmt.Sprintf("waiting until Kustomization %s no longer applies %s", key, ref))
					}
					return false, nil
				}
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until no Kustomization applies the cluster any more: %w", err)
	}
	return nil
}

// Applying returns the Kustomizations that apply obj to this cluster: those that are not suspended and have obj in their inventory, sorted.
func (s *System) Applying(ctx context.Context, obj *unstructured.Unstructured) ([]kube.Key, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at Flux: %w", err)
	}
	gvk := obj.GroupVersionKind()
	want := strings.Join([]string{obj.GetNamespace(), obj.GetName(), gvk.Group, gvk.Kind}, "_")
	var by []kube.Key
	for key, k := range w[kustomizationKind] {
		if suspended, _, _ := unstructured.NestedBool(k.Object, "spec", "suspend"); suspended {
			continue
		}
		if _, elsewhere, _ := unstructured.NestedMap(k.Object, "spec", "kubeConfig"); !elsewhere && slices.Contains(inventoryOf(k), want) {
			by = append(by, key)
		}
	}
	slices.SortFunc(by, compareKeys)
	return by, nil
}

// inventoryOf returns the ids in the inventory of a Kustomization.
func inventoryOf(k *unstructured.Unstructured) []string {
	entries, _, _ := unstructured.NestedSlice(k.Object, "status", "inventory", "entries")
	var ids []string
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		if id, ok := fields["id"].(string); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// WaitReleased waits until a HelmRelease exists and is Ready.
func (s *System) WaitReleased(ctx context.Context, release kube.Key, detail func(string)) error {
	if err := s.Reconcile(ctx); err != nil {
		return err
	}
	why := "it is not there yet"
	err := s.client.Watch(ctx, helmReleaseKind, kube.Selection{Namespace: release.Namespace, Name: release.Name},
		func(objects kube.Objects) (bool, error) {
			why = "it is not there yet"
			if obj := objects[release]; obj != nil {
				why = workloadReason(obj)
				if _, is := obj.GetAnnotations()[letGoAnnotation]; is {
					why = whySuspended
				}
			}
			if why != "" && detail != nil {
				detail("HelmRelease " + release.String() + ": " + why)
			}
			return why == "", nil
		})
	if err != nil {
		return fmt.Errorf("wait for HelmRelease %s (%s): %w", release, why, err)
	}
	return nil
}

// workers are the kinds that change clusters.
func workers() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kustomizationKind, helmReleaseKind}
}

// IsWorker tells whether objects of a kind change clusters: Kustomizations and HelmReleases do.
func IsWorker(kind schema.GroupKind) bool {
	return slices.ContainsFunc(workers(), func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind })
}

// worksOn tells whether an object of Flux works on the cluster of the Secret kubeconfig.
func worksOn(obj *unstructured.Unstructured, kubeconfig kube.Key) bool {
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "kubeConfig", "secretRef", "name")
	return name != "" && kubeconfig == kube.Key{Namespace: obj.GetNamespace(), Name: name}
}
