package flux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// The annotations of an object that tell Flux how to apply it.
const (
	forceAnnotation = "kustomize.toolkit.fluxcd.io/force"
	ssaAnnotation   = "kustomize.toolkit.fluxcd.io/ssa"
)

// ToApply is an object that a Flux Kustomization is to apply.
type ToApply struct {
	*unstructured.Unstructured

	By kube.Key
	// Opened tells whether the object is encrypted in Git. No error quotes its content then.
	Opened bool
}

// Rehearsal is what the Flux of a cluster would do at once.
type Rehearsal struct {
	// Deletes are objects of the cluster that Flux has applied and would delete.
	Deletes []kube.Ref
	// Refused lists the objects that the API server would refuse, with the reasons.
	Refused []error
	// Untold lists the objects that could not be tried, with the reasons.
	Untold []error
	// Encrypted are the encrypted objects, which were not tried.
	Encrypted []kube.Ref
}

// IsEncrypted tells whether an object is encrypted with sops. Flux decrypts such an object before it applies it.
func IsEncrypted(obj *unstructured.Unstructured) bool {
	_, is := obj.Object["sops"]
	return is
}

// Ahead describes objects that the cluster is still to get from another cluster.
type Ahead struct {
	// Source is the cluster that has the objects now, and their kinds.
	Source *kube.Client
	// Travels tells whether an object at the source comes to the cluster. The version of its kind does not count.
	Travels func(kube.Ref) bool
}

// rehearsal is one run of Rehearse.
type rehearsal struct {
	*System
	ahead *Ahead

	world   world
	mu      sync.Mutex
	result  Rehearsal
	arrives map[kube.Ref]bool // namespaces, and, without a name, the kinds of CRDs, that are applied, too
}

// Rehearse tries what Kustomizations of the cluster are to apply to it, each object in a dry run as kustomize-controller, and changes
// nothing. keep says of what those Kustomizations applied before whether they still are to. One that is suspended, and not by Suspend, does
// nothing. Where ahead is not nil, its source knows the Kustomizations, and what this cluster has no place for yet is tried there.
func (s *System) Rehearse(
	ctx context.Context,
	objects []ToApply,
	by []kube.Key,
	keep func(kube.Ref) bool,
	ahead *Ahead,
) (*Rehearsal, error) {
	knows := s
	if ahead != nil {
		knows = NewSystem(ahead.Source)
	}
	w, err := knows.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at what flux applied: %w", err)
	}
	r := &rehearsal{System: s, ahead: ahead, world: w, arrives: map[kube.Ref]bool{}}
	for _, o := range objects {
		r.arrive(o.Unstructured)
	}
	if err := kube.Each(parallelism, objects, func(o ToApply) error { return r.try(ctx, o) }); err != nil {
		return nil, err
	}
	before, err := r.prunable(by)
	if err != nil {
		return nil, err
	}
	before = slices.DeleteFunc(before, keep)
	if err := kube.Each(parallelism, before, func(ref kube.Ref) error { return r.deletes(ctx, ref) }); err != nil {
		return nil, err
	}
	for _, refs := range [][]kube.Ref{r.result.Deletes, r.result.Encrypted} {
		slices.SortFunc(refs, func(a, b kube.Ref) int { return strings.Compare(a.String(), b.String()) })
	}
	for _, errs := range [][]error{r.result.Refused, r.result.Untold} {
		slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	}
	return &r.result, nil
}

func namespaceRef(name string) kube.Ref {
	return kube.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "Namespace"}, Key: kube.Key{Name: name}}
}

func kindRef(kind schema.GroupKind) kube.Ref {
	return kube.Ref{GroupVersionKind: kind.WithVersion("")}
}

// arrive records the namespace or the kind that obj brings, because other objects may need it.
func (r *rehearsal) arrive(obj *unstructured.Unstructured) {
	switch obj.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		r.arrives[namespaceRef(obj.GetName())] = true
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		r.arrives[kindRef(schema.GroupKind{Group: group, Kind: kind})] = true
	}
}

// try applies one object in a dry run.
func (r *rehearsal) try(ctx context.Context, o ToApply) error {
	a := o.GetAnnotations()
	if IsEncrypted(o.Unstructured) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.result.Encrypted = append(r.result.Encrypted, kube.RefOf(o.Unstructured))
		return nil
	}
	if r.rests(o.By) || a[reconcileAnnotation] == kustomizev1.DisabledValue || a[ssaAnnotation] == "Ignore" {
		return nil
	}
	obj := o.DeepCopy()
	kube.AddLabels(obj, map[string]string{AppliedBy: o.By.Name, appliedFrom: o.By.Namespace})
	ref := kube.RefOf(obj)
	err := tryApply(ctx, r.tryAt(ref), obj)
	if kube.IsAbsent(err) && r.ahead != nil { // the kind, or the namespace, comes along
		err = tryApply(ctx, r.ahead.Source, obj)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case kube.IsAbsent(err) && (r.arrives[kindRef(ref.GroupKind())] || r.arrives[namespaceRef(ref.Namespace)]):
		return nil // it comes after what it needs
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	if o.Opened {
		err = unquoted(err)
	}
	err = fmt.Errorf("%s, which Kustomization %s applies: %w", ref, o.By, err)
	if refused && !r.forced(o) {
		r.result.Refused = append(r.result.Refused, err)
		return nil
	}
	r.result.Untold = append(r.result.Untold, err)
	return nil
}

// tryAt returns the cluster that has the object, or gets it first.
func (r *rehearsal) tryAt(ref kube.Ref) *kube.Client {
	if r.ahead != nil && r.ahead.Travels(ref) {
		return r.ahead.Source
	}
	return r.client
}

// tryApply applies an object as kustomize-controller does, in a dry run.
func tryApply(ctx context.Context, at *kube.Client, obj *unstructured.Unstructured) error {
	return kube.Retry(ctx, func(ctx context.Context) error {
		wanted := client.ApplyConfigurationFromUnstructured(obj.DeepCopy())
		return at.WithWatch.Apply(ctx, wanted, client.DryRunAll, client.ForceOwnership, client.FieldOwner(fluxOwner))
	})
}

// unquoted is an error of the API server in our own words: its own may quote the values that it refuses.
func unquoted(err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err
	}
	status := answer.Status()
	says := "the API server refuses it"
	if status.Reason != "" {
		says += " (" + string(status.Reason) + ")"
	}
	var fields []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			fields = append(fields, strings.TrimSpace(cause.Field+" "+string(cause.Type)))
		}
	}
	if len(fields) > 0 {
		says += ": " + strings.Join(fields, ", ")
	}
	return errors.New(says)
}

// forced tells whether Flux deletes and recreates an object that it cannot change.
func (r *rehearsal) forced(o ToApply) bool {
	if o.GetAnnotations()[forceAnnotation] == kustomizev1.EnabledValue {
		return true
	}
	k := r.world[kustomizationKind][o.By]
	if k == nil {
		return false
	}
	force, _, _ := unstructured.NestedBool(k.Object, "spec", "force")
	return force
}

// rests tells whether somebody else than Suspend has suspended a Kustomization.
func (r *rehearsal) rests(key kube.Key) bool {
	k := r.world[kustomizationKind][key]
	return k != nil && rests(k)
}

// rests tells whether somebody else than Suspend has suspended a Kustomization or a HelmRelease.
func rests(obj *unstructured.Unstructured) bool {
	_, ours := obj.GetAnnotations()[suspendedAnnotation]
	suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	return suspended && !ours
}

// prunable is what Kustomizations have applied to this cluster, and may delete.
func (r *rehearsal) prunable(by []kube.Key) ([]kube.Ref, error) {
	seen := map[kube.Ref]bool{}
	var refs []kube.Ref
	for _, key := range by {
		obj := r.world[kustomizationKind][key]
		if obj == nil || r.rests(key) {
			continue
		}
		var k kustomizev1.Kustomization
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &k); err != nil {
			return nil, fmt.Errorf("read %s: %w", kube.RefOf(obj), err)
		}
		if !k.Spec.Prune || k.Spec.KubeConfig != nil || k.Status.Inventory == nil {
			continue
		}
		for _, entry := range k.Status.Inventory.Entries {
			ref, err := entryRef(entry)
			if err != nil {
				return nil, fmt.Errorf("read the inventory of %s: %w", kube.RefOf(obj), err)
			}
			if !seen[ref] {
				seen[ref] = true
				refs = append(refs, ref)
			}
		}
	}
	return refs, nil
}

// deletes records an object that Flux would delete: the object exists, Flux has applied it, and no annotation protects it.
func (r *rehearsal) deletes(ctx context.Context, ref kube.Ref) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	at := r.tryAt(ref)
	err := kube.Retry(ctx, func(ctx context.Context) error { return at.Get(ctx, ref.Key, obj) })
	if kube.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", ref, err)
	}
	a := obj.GetAnnotations()
	if a[pruneAnnotation] == kustomizev1.DisabledValue || a[reconcileAnnotation] == kustomizev1.DisabledValue ||
		obj.GetLabels()[AppliedBy] == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Deletes = append(r.result.Deletes, ref)
	return nil
}
