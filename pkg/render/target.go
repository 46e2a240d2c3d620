package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
)

// What stands behind the name of a target that no kubeconfig Secret of Cluster API names. No name in Kubernetes has a blank.
const (
	bySecret    = " (Secret)"
	byConfigMap = " (ConfigMap)"
)

// targetOf is the cluster that a kubeConfig in a namespace leads to; "" if it leads to none. For a kubeconfig Secret of Cluster API it is
// the ID of the workload cluster. Another Secret, and a ConfigMap, may have the name of such a cluster and still lead to another one.
func targetOf(ref *meta.KubeConfigReference, namespace string) string {
	switch {
	case ref == nil:
		return ""
	case ref.SecretRef != nil:
		name, key := ref.SecretRef.Name, ref.SecretRef.Key
		if cluster, ok := strings.CutSuffix(name, "-kubeconfig"); ok {
			return ClusterID(namespace, cluster) // all keys of such a Secret are for one cluster
		}
		if key != "" && key != "value" && key != "value.yaml" {
			return fmt.Sprintf("%s (key %s)", ClusterID(namespace, name), key)
		}
		return ClusterID(namespace, name) + bySecret
	case ref.ConfigMapRef != nil:
		return ClusterID(namespace, ref.ConfigMapRef.Name) + byConfigMap
	}
	return ""
}

// ClusterID is a unique name of a workload cluster on its management cluster: its name if its namespace has the same name, as in fleetctl's
// layout, or else namespace/name.
func ClusterID(namespace, name string) string {
	if namespace == "" || namespace == name {
		return name
	}
	return namespace + "/" + name
}

// nameTargets removes what stands behind the names of targets, unless two targets would then have one name.
func (w *walk) nameTargets() {
	named := map[string]map[string]bool{} // the targets by the names that they would have
	look := func(targets []string) []string {
		for _, target := range targets {
			name := plainTarget(target)
			if named[name] == nil {
				named[name] = map[string]bool{}
			}
			named[name][target] = true
		}
		return targets
	}
	w.eachTargets(look)
	w.eachTargets(func(targets []string) []string {
		if !slices.ContainsFunc(targets, func(target string) bool { return plainTarget(target) != target }) {
			return targets
		}
		out := slices.Clone(targets) // objects share it
		for i, target := range out {
			if name := plainTarget(target); len(named[name]) == 1 {
				out[i] = name
			}
		}
		return out
	})
}

func plainTarget(target string) string {
	return strings.TrimSuffix(strings.TrimSuffix(target, bySecret), byConfigMap)
}

// eachTargets replaces the targets of everything that was found.
func (w *walk) eachTargets(change func(targets []string) []string) {
	for _, k := range w.result.Kustomizations {
		k.Targets = change(k.Targets)
	}
	var objects func(all []*Object)
	objects = func(all []*Object) {
		for _, o := range all {
			o.Targets = change(o.Targets)
			objects(w.children[o])
		}
	}
	objects(w.result.Objects)
}
