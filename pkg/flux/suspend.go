package flux

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// suspendedAnnotation marks objects that Suspend suspended, so that Resume does not resume objects that the user suspended.
const suspendedAnnotation = "fleetctl.dev/suspended"

// parallelism bounds the concurrent requests.
const parallelism = 12

// Suspend stops Flux from changing anything in the cluster. It suspends all Kustomizations, flux-system first, because that one would
// resume the others; then all HelmReleases; then the sources. It marks each object that it suspends, and skips objects that are already
// suspended. A running reconciliation goes on and may make new objects, so Suspend looks again until there are none. It returns the
// objects that it suspended.
//
// When a suspended object is deleted, kustomize-controller prunes nothing and helm-controller uninstalls nothing. So an object that works
// on a deleted cluster (see Remote) no longer blocks its own deletion and its namespace's. Suspend is for the whole of Flux, before a
// teardown or a pivot. To keep Flux off a single object, annotate it with kustomize.toolkit.fluxcd.io/reconcile: disabled.
func (s *System) Suspend(ctx context.Context) ([]kube.Ref, error) {
	var all []kube.Ref
	for range suspendRounds {
		suspended, err := s.suspendOnce(ctx)
		all = append(all, suspended...)
		if err != nil || len(suspended) == 0 {
			return all, err
		}
	}
	return all, nil
}

// suspendRounds bounds the rounds of Suspend. A Kustomization that is reconciling while it is suspended can make further Kustomizations
// and HelmReleases.
const suspendRounds = 4

func (s *System) suspendOnce(ctx context.Context) ([]kube.Ref, error) {
	system := kube.Ref{GroupVersionKind: kustomizationKind, Key: systemKey}
	return s.toggle(ctx, "suspend", suspendOrder(), system, func(obj *unstructured.Unstructured) map[string]any {
		if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended {
			return nil
		}
		return toggled(true, "true")
	})
}

// Resume resumes the objects that Suspend suspended: sources, HelmReleases, Kustomizations, and flux-system last. It returns them.
func (s *System) Resume(ctx context.Context) ([]kube.Ref, error) {
	return s.resume(ctx, func(kube.Ref) bool { return true })
}

// ResumeOnly is Resume for the objects in refs.
func (s *System) ResumeOnly(ctx context.Context, refs []kube.Ref) ([]kube.Ref, error) {
	return s.resume(ctx, func(r kube.Ref) bool { return slices.Contains(refs, r) })
}

func (s *System) resume(ctx context.Context, wanted func(kube.Ref) bool) ([]kube.Ref, error) {
	order := suspendOrder()
	slices.Reverse(order)
	return s.toggle(ctx, "resume", order, kube.Ref{}, func(obj *unstructured.Unstructured) map[string]any {
		if _, ours := obj.GetAnnotations()[suspendedAnnotation]; !ours || !wanted(kube.RefOf(obj)) {
			return nil
		}
		return toggled(nil, nil)
	})
}

// Quiet suspends and marks an object before it is created, as Suspend would in the cluster. Resume resumes it later. Quiet leaves objects
// as they are that the user suspended, or that are of other kinds.
func Quiet(obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	if !slices.ContainsFunc(suspendOrder(), func(k schema.GroupVersionKind) bool { return k.GroupKind() == gvk.GroupKind() }) {
		return nil
	}
	if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended {
		return nil
	}
	kube.AddAnnotations(obj, map[string]string{suspendedAnnotation: "true"})
	if err := unstructured.SetNestedField(obj.Object, true, "spec", "suspend"); err != nil {
		return fmt.Errorf("suspend %s: %w", kube.RefOf(obj), err)
	}
	return nil
}

func suspendOrder() []schema.GroupVersionKind {
	return append(workers(), sourceKinds()...)
}

func toggled(suspend, mark any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{suspendedAnnotation: mark}},
		"spec":     map[string]any{"suspend": suspend},
	}
}

// toggle patches the objects of each kind with the result of change, kind by kind, and first before all others. nil leaves an object as
// it is. toggle tries all objects of a kind before it returns an error.
func (s *System) toggle(
	ctx context.Context, verb string, kinds []schema.GroupVersionKind, first kube.Ref,
	change func(*unstructured.Unstructured) map[string]any,
) ([]kube.Ref, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s flux: %w", verb, err)
	}
	var done []kube.Ref
	run := func(refs []kube.Ref) error {
		changed := make([]bool, len(refs))
		errs := make([]error, len(refs))
		var group errgroup.Group
		group.SetLimit(parallelism)
		for i, ref := range refs {
			patch := change(w[ref.GroupVersionKind][ref.Key])
			if patch == nil {
				continue
			}
			group.Go(func() error {
				err := s.patch(ctx, ref, patch)
				if err != nil && !gone(err) {
					errs[i] = fmt.Errorf("%s %s: %w", verb, ref, err)
				}
				changed[i] = err == nil
				return nil
			})
		}
		_ = group.Wait() // the errors are in errs, so that all objects are tried
		for i, ref := range refs {
			if changed[i] {
				done = append(done, ref)
			}
		}
		return errors.Join(errs...)
	}
	if w[first.GroupVersionKind][first.Key] != nil {
		if err := run([]kube.Ref{first}); err != nil {
			return done, err
		}
	}
	for _, gvk := range kinds {
		refs := w.refs(gvk)
		refs = slices.DeleteFunc(refs, func(r kube.Ref) bool { return r == first })
		if err := run(refs); err != nil {
			return done, err
		}
	}
	return done, nil
}

// refs of all objects of a kind, sorted.
func (w world) refs(gvk schema.GroupVersionKind) []kube.Ref {
	refs := make([]kube.Ref, 0, len(w[gvk]))
	for key := range w[gvk] {
		refs = append(refs, kube.Ref{GroupVersionKind: gvk, Key: key})
	}
	slices.SortFunc(refs, func(a, b kube.Ref) int { return compareKeys(a.Key, b.Key) })
	return refs
}

// RemoteObject is a Kustomization or HelmRelease that works on another cluster.
type RemoteObject struct {
	kube.Ref
	// Secret with the kubeconfig; empty if a ConfigMap describes the access.
	Secret kube.Key
}

// Remote lists the Kustomizations and HelmReleases that work on another cluster through a kubeConfig. If that cluster no longer exists,
// such an object has to be suspended before it is deleted. Otherwise its finalizer blocks its deletion and its namespace's.
func (s *System) Remote(ctx context.Context) ([]RemoteObject, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	var remote []RemoteObject
	for _, gvk := range workers() {
		for _, ref := range w.refs(gvk) {
			spec, found, _ := unstructured.NestedMap(w[gvk][ref.Key].Object, "spec", "kubeConfig")
			if !found {
				continue
			}
			r := RemoteObject{Ref: ref}
			if name, _, _ := unstructured.NestedString(spec, "secretRef", "name"); name != "" {
				r.Secret = kube.Key{Namespace: ref.Namespace, Name: name}
			}
			remote = append(remote, r)
		}
	}
	return remote, nil
}
