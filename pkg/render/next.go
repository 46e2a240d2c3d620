package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// isFlux tells whether content is a Flux object of a kind. It looks at the API group, because kustomize has a kind Kustomization as well.
func isFlux(c *content, kind string) bool { return isFluxKind(c.APIVersion, c.Kind, kind) }

func isFluxKind(apiVersion, kind, wanted string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return kind == wanted && strings.HasSuffix(group, ".toolkit.fluxcd.io")
}

// next returns the Kustomizations among objects.
func (w *walk) next(all []*Object) []*item {
	var items []*item
	for _, o := range all {
		items = append(items, w.kustomizations(o)...)
		w.leavesOut(o)
	}
	return items
}

func (w *walk) kustomizationsOf(all []*Object) []*item {
	var items []*item
	for _, o := range all {
		items = append(items, w.kustomizations(o)...)
	}
	return items
}

func seenKey(o Owner, targets []string) string {
	return o.String() + "\x00" + strings.Join(targets, ",")
}

// kustomizations returns the item for an object that is a Flux Kustomization to follow, or none.
func (w *walk) kustomizations(o *Object) []*item {
	if !isFluxKind(o.APIVersion, o.Kind, KindKustomization) {
		return nil
	}
	owner := Owner{KindKustomization, o.Namespace, o.Name}
	id := seenKey(owner, o.Targets)
	if w.seen[id] {
		return nil
	}
	w.seen[id] = true
	var spec kustomizev1.Kustomization
	if err := json.Unmarshal(o.JSON, &spec); err != nil {
		w.problem(o, diag.SeverityError, RuleDecode, err.Error())
		return nil
	}
	ref := spec.Spec.SourceRef
	clean := w.folder(ref.Kind, cleanPath(spec.Spec.Path))
	from := cmp.Or(ref.Namespace, o.Namespace)
	if w.isUnknown(o.Targets, ref.Kind, from, ref.Name) && w.await(o, ref.Kind, from, ref.Name) {
		delete(w.seen, id)
		return nil
	}
	if ref.Kind == kindArtifact {
		dir, known := w.unpacked(o.Targets, from, ref.Name, cleanPath(spec.Spec.Path))
		switch {
		case !known && w.await(o, ref.Kind, from, ref.Name):
			delete(w.seen, id)
			return nil
		case dir != "":
			return w.item(o, owner, &spec, dir)
		}
	}
	if why := w.foreign(o.Targets, ref.Kind, from, ref.Name); why != "" {
		w.problem(o, diag.SeverityWarning, RuleSource, why+": what it applies is not rendered")
		return nil
	}
	ok := fs.ValidPath(clean) && !strings.Contains(clean, `\`)
	if !ok {
		w.problem(o, diag.SeverityError, RulePath, fmt.Sprintf("the path %q leads out of the repo", spec.Spec.Path))
		return nil
	}
	if why := w.mayBeForeign(o.Targets, ref.Kind, from, ref.Name, clean); why != "" {
		w.problem(o, diag.SeverityWarning, RuleSource, why+": what it applies is not rendered")
		return nil
	}
	return w.item(o, owner, &spec, clean)
}

// item returns the item for a Kustomization that applies a folder of the repo, or none if the folder is not in the scope.
func (w *walk) item(o *Object, owner Owner, spec *kustomizev1.Kustomization, dir string) []*item {
	k := &Kustomization{
		Owner: owner, Source: o.Source, Path: dir, GitSource: spec.Spec.SourceRef.Name, ManagementCluster: w.mgmt.Name,
		Environment: o.Environment, Cluster: o.Cluster, Targets: o.Targets, Suspended: o.Suspended || spec.Spec.Suspend,
	}
	if target := targetOf(spec.Spec.KubeConfig, o.Namespace); target != "" {
		k.Targets = []string{target}
	}
	if environment, _ := placed(w.layouts, dir+"/x"); environment != "" {
		k.Environment = environment
	}
	if !w.scope.follows(k) {
		return nil
	}
	return []*item{{k: k, spec: spec.Spec, namespace: o.Namespace}}
}

// folder returns the folder of the repo for a path in a source of a kind. In a repo with its own layout, the source may be an artifact that
// was made from a folder around the management cluster's own folder.
func (w *walk) folder(kind, clean string) string {
	if w.mgmt.Path == "" || kind == "GitRepository" || w.r.repo.isDir(clean) || !fs.ValidPath(clean) {
		return clean
	}
	for top := path.Dir(w.mgmt.Dir()); top != "."; top = path.Dir(top) {
		if at := path.Join(top, clean); w.r.repo.isDir(at) {
			return at
		}
	}
	return clean
}

// cleanPath returns the path of a Flux Kustomization, relative to the top of the repo. No path means the top.
func cleanPath(given string) string { return path.Clean(strings.TrimPrefix(cmp.Or(given, "."), "/")) }
