package adopt

import (
	"maps"
	"strings"
	"testing"
)

// Flux reads JSON only where a kustomization.yaml names it. Clusters in other such files are not made, and the report says so.
func TestJSON(t *testing.T) {
	const sync = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\n" +
		"spec: {interval: 10m, path: ./clusters/prod, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n"
	const cluster = `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "edge", "namespace": "default"}}`
	for name, tc := range map[string]struct {
		more     map[string]string
		told     string
		clusters int
	}{
		"in a folder without a kustomization.yaml": {told: "clusters/prod/edge.json"},
		"named by a kustomization.yaml": {
			more:     map[string]string{"clusters/prod/kustomization.yaml": "resources: [flux-system/gotk-sync.yaml, edge.json]\n"},
			clusters: 1,
		},
		"not named by it": {
			more: map[string]string{"clusters/prod/kustomization.yaml": "resources: [flux-system/gotk-sync.yaml]\n"},
			told: "clusters/prod/edge.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{
				"clusters/prod/flux-system/gotk-sync.yaml": sync, "clusters/prod/edge.json": cluster, "package.json": `{"kind": "x"}`,
			}
			maps.Copy(all, tc.more)
			r, told := lookAt(t, all, ruleNotApplied)
			if strings.Join(told, " ") != tc.told || len(r.Clusters) != tc.clusters {
				t.Errorf("told of %q, want %q; clusters: %v", told, tc.told, r.Clusters)
			}
			if _, err := r.fleet(Options{}); tc.told != "" && (err == nil || !strings.Contains(err.Error(), tc.told)) {
				t.Errorf("%v", err)
			}
		})
	}
}
