package flux

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// fluxInstanceKind is the Flux operator's kind for an installation of Flux and its source. The operator reverts other changes to them.
var fluxInstanceKind = schema.GroupVersionKind{Group: "fluxcd.controlplane.io", Version: "v1", Kind: "FluxInstance"}

// Following describes what the Flux of a cluster follows now. If init pointed Flux to another source, Flux would prune the objects that
// it has applied so far.
type Following struct {
	// SourceKind, URL and Ref describe the source of the Kustomization flux-system, or else the GitRepository flux-system. They are "" if
	// there is neither. Ref is the name of a branch, or "tag v1", "commit …" and so on.
	SourceKind, URL, Ref string
	// Path that the Kustomization flux-system applies, "." for the top of the repo; "" without such a Kustomization.
	Path string
	// Prune means that the Kustomization deletes applied objects that are no longer in its source.
	Prune bool
	// Applied is the commit that the Kustomization has last applied.
	Applied string
	// Operator is the FluxInstance, NAMESPACE/NAME, that manages this Flux; "" if there is none.
	Operator string
	// Suspended are the GitRepository and the Kustomization flux-system, as far as they are suspended.
	Suspended kube.NotReadyError
	// Others are Kustomizations that flux-system did not apply, with their sources.
	Others []string
}

// Nothing tells whether Flux follows nothing.
func (f *Following) Nothing() bool {
	return f.SourceKind == "" && f.Path == "" && f.Operator == "" && len(f.Others) == 0
}

// Synced tells whether the GitRepository or the Kustomization flux-system exists.
func (f *Following) Synced() bool { return f.SourceKind != "" || f.Path != "" }

// String describes it in words.
func (f *Following) String() string {
	var parts []string
	if f.Operator != "" {
		parts = append(parts, "the source in FluxInstance "+f.Operator+" of the Flux operator")
	}
	if f.Synced() {
		text := cmp.Or(f.URL, "a source that does not exist")
		if f.SourceKind != sourcev1.GitRepositoryKind && f.SourceKind != "" {
			text = f.SourceKind + " " + text
		}
		if f.Ref != "" {
			text += ", " + f.Ref
		}
		if f.Path != "" {
			text += ", path " + f.Path
		}
		parts = append(parts, text)
	}
	parts = append(parts, f.Others...)
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// Following looks at what Flux follows. A cluster without Flux follows nothing.
func (s *System) Following(ctx context.Context) (*Following, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at what flux follows: %w", err)
	}
	f := &Following{}
	if f.Operator, err = s.operator(ctx); err != nil {
		return nil, err
	}
	source := kube.Ref{GroupVersionKind: gitRepositoryKind, Key: systemKey}
	if obj := w[kustomizationKind][systemKey]; obj != nil {
		f.noteSuspended(obj)
		var k kustomizev1.Kustomization
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &k); err != nil {
			return nil, fmt.Errorf("read %s: %w", kube.RefOf(obj), err)
		}
		f.Path, f.Prune, f.Applied = CleanPath(k.Spec.Path), k.Spec.Prune, commitOf(k.Status.LastAppliedRevision)
		f.SourceKind = k.Spec.SourceRef.Kind
		source = sourceOf(&k)
	}
	if obj := w[source.GroupVersionKind][source.Key]; obj != nil {
		f.SourceKind, f.URL, f.Ref = source.Kind, sourceURL(obj), refOf(obj)
		f.noteSuspended(obj)
	}
	for _, ref := range w.refs(kustomizationKind) {
		obj := w[kustomizationKind][ref.Key]
		if ref.Key == systemKey || obj.GetLabels()[AppliedBy] != "" || ownedByFlux(obj) {
			continue
		}
		var k kustomizev1.Kustomization
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &k); err != nil {
			return nil, fmt.Errorf("read %s: %w", ref, err)
		}
		from := sourceOf(&k)
		text := fmt.Sprintf("%s (%s", ref, from)
		if obj := w[from.GroupVersionKind][from.Key]; obj != nil {
			text += ", " + sourceURL(obj)
		}
		f.Others = append(f.Others, text+", path "+CleanPath(k.Spec.Path)+")")
	}
	return f, nil
}

// noteSuspended adds an object that is suspended. One that Suspend suspended is left out: the command that did so resumes it.
func (f *Following) noteSuspended(obj *unstructured.Unstructured) {
	suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	if _, ours := obj.GetAnnotations()[suspendedAnnotation]; suspended && !ours {
		f.Suspended = append(f.Suspended, kube.Unready{Ref: kube.RefOf(obj), Reason: whySuspended})
	}
}

// ResumeHint says how to resume what is suspended; "" where nothing is.
func (f *Following) ResumeHint() string { return resumeHint(f.Suspended) }

// ownedByFlux tells whether helm-controller installed obj from a HelmRelease. Then the HelmRelease is listed instead.
func ownedByFlux(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()["helm.toolkit.fluxcd.io/name"] != ""
}

// operator returns the NAMESPACE/NAME of a FluxInstance, "" without one.
func (s *System) operator(ctx context.Context) (string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(fluxInstanceKind.GroupVersion().WithKind(fluxInstanceKind.Kind + "List"))
	err := s.client.List(ctx, list)
	if kube.IsAbsent(err) || err == nil && len(list.Items) == 0 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("list %s: %w", fluxInstanceKind.Kind, err)
	}
	return kube.RefOf(&list.Items[0]).Key.String(), nil
}

func sourceOf(k *kustomizev1.Kustomization) kube.Ref {
	ref := kube.Ref{Key: kube.Key{Namespace: cmp.Or(k.Spec.SourceRef.Namespace, k.Namespace), Name: k.Spec.SourceRef.Name}}
	i := slices.IndexFunc(sourceKinds(), func(gvk schema.GroupVersionKind) bool { return gvk.Kind == k.Spec.SourceRef.Kind })
	if i < 0 {
		ref.Kind = k.Spec.SourceRef.Kind // a kind that fleetctl does not know
		return ref
	}
	ref.GroupVersionKind = sourceKinds()[i]
	return ref
}

// sourceURL is the URL of a source, or the endpoint and name of a bucket.
func sourceURL(source *unstructured.Unstructured) string {
	if url := urlOf(*source); url != "" {
		return url
	}
	endpoint, _, _ := unstructured.NestedString(source.Object, "spec", "endpoint")
	bucket, _, _ := unstructured.NestedString(source.Object, "spec", "bucketName")
	return strings.Trim(endpoint+"/"+bucket, "/")
}

// refOf is the reference that a source follows: only the name for a branch, else the kind and the name, as "tag v1".
func refOf(source *unstructured.Unstructured) string {
	ref, found, _ := unstructured.NestedStringMap(source.Object, "spec", "ref")
	if !found && source.GetKind() == sourcev1.GitRepositoryKind {
		return "master" // Flux's own default
	}
	for _, field := range []string{"commit", "name", "semver", "tag", "digest"} { // in the order in which Flux prefers them
		if ref[field] != "" {
			return field + " " + ref[field]
		}
	}
	return ref["branch"]
}

// CleanPath returns a path in a repo without a leading ./ or / and without trailing slashes; "." is the top.
func CleanPath(p string) string { return cmp.Or(strings.TrimPrefix(path.Clean("/"+p), "/"), ".") }
