//go:build integration

package leaving

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

const helmReleases = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec:
  group: helm.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: HelmRelease, listKind: HelmReleaseList, plural: helmreleases, singular: helmrelease}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// A chart of a team's own need not keep its Cluster; the HelmRelease is kept all the same until Flux has applied the first step. A removal
// of its files before that leaves a cluster that nothing manages.
func TestWaitUnprotected(t *testing.T) {
	ctx := t.Context()
	client, _ := kubetest.Start(t)
	kubetest.ClusterAPI(t, client, "clusters")
	apply := func(t *testing.T, documents string) {
		t.Helper()
		if _, err := kubetest.ApplyYAML(ctx, client, []byte(documents), kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, helmReleases)
	cluster := func(name, annotations string) string {
		return fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: %[1]s, namespace: %[1]s, annotations: {%[2]s}}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TestCluster, name: %[1]s}}
`, name, annotations)
	}
	release := func(name, prune string) string {
		return fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %[1]s, namespace: %[1]s, annotations: {kustomize.toolkit.fluxcd.io/prune: %[2]s}}
`, name, prune)
	}
	const keep = "helm.sh/resource-policy: keep"
	for _, tt := range []struct {
		name     string // of the cluster, too
		before   string
		then     string // what Flux applies in the end
		waitsFor string
	}{
		{
			name: "chart-keeps", before: release("chart-keeps", "enabled") + "---" + cluster("chart-keeps", keep),
			then: cluster("chart-keeps", "a: b"), waitsFor: "it is still protected",
		},
		{
			name: "own-chart", before: release("own-chart", "disabled") + "---" + cluster("own-chart", "a: b"),
			then: release("own-chart", "enabled"), waitsFor: "HelmRelease own-chart/own-chart is still protected",
		},
		{name: "applied", before: release("applied", "enabled") + "---" + cluster("applied", "a: b")},
		{name: "detached", before: release("detached", "disabled")},
		{name: "no-release", before: cluster("no-release", "a: b")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			apply(t, tt.before)
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			told := make(chan string, 100)
			ended := make(chan error, 1)
			key := kube.Key{Namespace: tt.name, Name: tt.name}
			go func() { ended <- waitUnprotected(ctx, client, key, func(text string) { told <- text }) }()
			if tt.waitsFor != "" {
				select {
				case text := <-told:
					if !strings.Contains(text, tt.waitsFor) {
						t.Errorf("it waits and says %q, want %q", text, tt.waitsFor)
					}
				case err := <-ended:
					t.Fatalf("it did not wait: %v", err)
				}
				apply(t, tt.then)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("what an interrupted removal has left", func(t *testing.T) {
		apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: left, labels: {kustomize.toolkit.fluxcd.io/name: clusters-dev}}}")
		for name, want := range map[string]bool{"left": true, "applied": false, "default": false, "never-was": false} {
			if got, err := Unfinished(ctx, client, name); err != nil || got != want {
				t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
			}
		}
		apply(t, strings.Replace(release("left", "disabled"), "metadata: {name: left}}",
			"metadata: {name: left, labels: {kustomize.toolkit.fluxcd.io/name: clusters-dev}}}", 1))
		if got, err := Unfinished(ctx, client, "left"); err != nil || got {
			t.Errorf("a cluster that Flux keeps is taken for one that goes: %v, %v", got, err)
		}
	})
}
