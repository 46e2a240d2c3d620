package flux

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Applied is the state of a Flux Kustomization in flux-system.
type Applied struct {
	// Commit that the Kustomization has last applied; "" if none.
	Commit string
	// Missing lists the applied objects that are not healthy, and the Kustomization if it has applied another commit. It is empty if all
	// is well.
	Missing []string
	// Own are the namespaces of the workload clusters whose own Flux applies their apps. So the objects here say nothing about these apps.
	Own []string
}

// Applied reads the Flux Kustomization called name and all objects that it applied. commit is the expected commit; "" accepts any.
func (s *System) Applied(ctx context.Context, name, commit string) (*Applied, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	out := &Applied{Commit: commitOf(w.applied(name))}
	if commit == "" {
		commit = out.Commit
	}
	missing, seen := w.below(name, commit)
	for _, m := range missing {
		out.Missing = append(out.Missing, m.String())
	}
	for ref := range seen {
		if obj := w[ref.GroupVersionKind][ref.Key]; obj != nil && obj.GetLabels()[WorkloadLabel] == syncPart {
			out.Own = append(out.Own, ref.Namespace)
		}
	}
	slices.Sort(out.Own)
	return out, nil
}

// MissingInside reads, on a workload cluster with a Flux of its own, what this Flux has not applied yet of a commit of the fleet repo, and
// what is not healthy there. It is empty if all is well.
func (s *System) MissingInside(ctx context.Context, commit string) ([]string, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range w.inside(commit) {
		out = append(out, m.String())
	}
	return out, nil
}

// inside is like pending, but starts at each Kustomization that reads the GitRepository flux-system: on a workload cluster none of them has
// this name.
func (w world) inside(commit string) kube.NotReadyError {
	c := &check{world: w, commit: commit, seen: map[kube.Ref]bool{}}
	if c.system(kube.Ref{GroupVersionKind: gitRepositoryKind, Key: systemKey}) {
		for _, ref := range w.refs(kustomizationKind) {
			source, _, _ := unstructured.NestedStringMap(w[ref.GroupVersionKind][ref.Key].Object, "spec", "sourceRef")
			if source["kind"] == gitRepositoryKind.Kind && source["name"] == Name && cmp.Or(source["namespace"], ref.Namespace) == Namespace {
				c.visit(ref)
			}
		}
	}
	slices.SortFunc(c.missing, func(a, b kube.Unready) int { return cmp.Compare(a.String(), b.String()) })
	return c.missing
}
