package render_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// TestSubstitutesKeepToBounds fills in a value of 4 MB that stands in 20,000 places: in one object, and in one object each.
func TestSubstitutesKeepToBounds(t *testing.T) {
	large := strings.Repeat("x", 4<<20)
	for name, objects := range map[string]string{
		"one object": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\ndata:\n" + each(20_000, "  k%d: a${large}\n"),
		// Kustomize takes minutes for 20,000 objects, even for empty ones.
		"many objects": each(40,
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x%d, namespace: x}\ndata: {k: \""+strings.Repeat("a${large}", 500)+"\"}\n"),
		"replaced": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\ndata: {k: \"${large//x/" +
			strings.Repeat("y", 1<<20) + "}\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{ManagementClusters: []v1alpha1.ManagementCluster{{
				Name:  "mgmt",
				Cloud: "docker", Generation: "v1",
			}}}}
			dir := fleet.Spec.ManagementClusters[0].Dir()
			repo := fstest.MapFS{
				dir + "/flux-system/kustomization.yaml": {Data: []byte("resources: []\n")},
				dir + "/kustomization.yaml":             {Data: []byte("resources: [big.yaml, fine.yaml]\n")},
				dir + "/big.yaml": {Data: []byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: big, namespace: " +
					"flux-system}\n" +
					"spec: {path: ./big, prune: true, interval: 1m, sourceRef: {kind: GitRepository, name: flux-system}, postBuild: {substitute: " +
					"{large: " + large + "}}}\n")},
				dir + "/fine.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: fine}\n")},
				"big/objects.yaml": {Data: []byte(objects)},
			}
			result, err := render.New(repo, fleet, render.Options{}).All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Findings) == 0 {
				t.Fatal("nothing is wrong")
			}
			f := result.Findings[0]
			if f.Rule != render.RuleSubstitute || !strings.Contains(f.Summary, "Kustomization flux-system/big") ||
				!strings.Contains(f.Summary, "MiB") {
				t.Errorf("got %v", f)
			}
			fine := false
			for _, o := range result.Objects {
				fine = fine || o.Name == "fine"
			}
			if !fine {
				t.Error("what has nothing to do with it is missing")
			}
		})
	}
}

func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if strings.Contains(format, "%d") {
			fmt.Fprintf(&b, format, i)
		}
	}
	return b.String()
}
