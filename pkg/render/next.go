package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// isFlux says whether content is a Flux object of a kind; kustomize has a Kustomization as well.
func isFlux(c *content, kind string) bool { return isFluxKind(c.APIVersion, c.Kind, kind) }

func isFluxKind(apiVersion, kind, wanted string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return kind == wanted && strings.HasSuffix(group, ".toolkit.fluxcd.io")
}

// next are the Kustomizations among objects.
func (w *walk) next(all []*Object) []*item {
	var items []*item
	for _, o := range all {
		items = append(items, w.kustomizations(o)...)
		w.leavesOut(o)
	}
	return items
}

func seenKey(o Owner, targets []string) string {
	return o.String() + "\x00" + strings.Join(targets, ",")
}

// kustomizations is the item for an object, if it is a Flux Kustomization to follow.
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
		w.problem(o, diag.SeverityError, RuleSyntax, err.Error())
		return nil
	}
	ref := spec.Spec.SourceRef
	if why := w.foreign(o.Targets, ref.Kind, cmp.Or(ref.Namespace, o.Namespace), ref.Name); why != "" {
		w.problem(o, diag.SeverityWarning, RuleSource, why+": what it applies is not rendered")
		return nil
	}
	clean := cleanPath(spec.Spec.Path)
	ok := fs.ValidPath(clean) && !strings.Contains(clean, `\`)
	if !ok {
		w.problem(o, diag.SeverityError, RulePath, fmt.Sprintf("the path %q leads out of the repo", spec.Spec.Path))
		return nil
	}
	k := &Kustomization{
		Owner: owner, Source: o.Source, Path: clean, GitSource: ref.Name, ManagementCluster: w.mgmt.Name,
		Environment: o.Environment, Cluster: o.Cluster, Targets: o.Targets, Suspended: o.Suspended || spec.Spec.Suspend,
	}
	if target := targetOf(spec.Spec.KubeConfig, o.Namespace); target != "" {
		k.Targets = []string{target}
	}
	if environment, _ := placed(w.layouts, clean+"/x"); environment != "" {
		k.Environment = environment
	}
	if !w.scope.follows(k) {
		return nil
	}
	return []*item{{k: k, spec: spec.Spec, namespace: o.Namespace}}
}

// cleanPath is the path of a Flux Kustomization as it counts in the repo: without one it is the top.
func cleanPath(given string) string { return path.Clean(strings.TrimPrefix(cmp.Or(given, "."), "/")) }

// targetOf is the workload cluster that a kubeconfig Secret of Cluster API in a namespace belongs to.
func targetOf(ref *meta.KubeConfigReference, namespace string) string {
	if ref == nil || ref.SecretRef == nil {
		return ""
	}
	return ClusterID(namespace, strings.TrimSuffix(ref.SecretRef.Name, "-kubeconfig"))
}

// ClusterID tells a workload cluster from all others of its management cluster: its name, which the clusters of the layout have for a
// namespace as well, else with its namespace.
func ClusterID(namespace, name string) string {
	if namespace == "" || namespace == name {
		return name
	}
	return namespace + "/" + name
}
