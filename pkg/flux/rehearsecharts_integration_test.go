//go:build integration

package flux

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

const chartsThere = `
apiVersion: v1
kind: ConfigMap
metadata: {name: same, namespace: default, labels: {app: other}}
data: {a: "1", added: by somebody}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: default}
data: {a: "1", b: "1"}
---
apiVersion: v1
kind: Service
metadata: {name: fixed, namespace: default}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: works, namespace: default, annotations: {fleetctl.dev/suspended: "true"}}
spec: {interval: 10m, suspend: true, chart: {spec: {chart: ./x, sourceRef: {kind: GitRepository, name: flux-system}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: rests, namespace: default}
spec: {interval: 10m, suspend: true, chart: {spec: {chart: ./x, sourceRef: {kind: GitRepository, name: flux-system}}}}
`

const chartsMake = `
apiVersion: v1
kind: ConfigMap
metadata: {name: same, namespace: default, labels: {app: mine}}
data: {a: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: default}
data: {a: "2", b: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: missing, namespace: default}
---
apiVersion: v1
kind: Service
metadata: {name: fixed, namespace: default}
spec: {clusterIP: 10.0.0.77, ports: [{port: 80}]}
`

// A rehearsal names what the charts would make and change, and leaves the cluster as it is.
func TestRehearseCharts(t *testing.T) {
	c, _ := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	if _, err := kubetest.ApplyYAML(ctx, c, []byte(chartsThere), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	parsed, err := kube.ParseYAML([]byte(chartsMake))
	if err != nil {
		t.Fatal(err)
	}
	var objects []ToInstall
	for _, obj := range parsed {
		objects = append(objects, ToInstall{obj, kube.Key{Namespace: "default", Name: "works"}},
			ToInstall{obj, kube.Key{Namespace: "default", Name: "rests"}})
	}
	found, err := NewSystem(c).RehearseCharts(ctx, objects, ChartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ConfigMap default/missing of HelmRelease default/works"}; !slices.Equal(found.Makes, want) {
		t.Errorf("it would make %q, want %q", found.Makes, want)
	}
	if want := []string{"ConfigMap default/other of HelmRelease default/works (data.a)"}; !slices.Equal(found.Changes, want) {
		t.Errorf("it would change %q, want %q", found.Changes, want)
	}
	if len(found.Untold) != 1 {
		t.Errorf("untold: %v", found.Untold)
	}
	ref := coreRef("ConfigMap", kube.Key{Namespace: "default", Name: "missing"})
	if there, err := c.Exists(ctx, ref.GroupVersionKind, ref.Key); err != nil || there {
		t.Errorf("a rehearsal made %s: %v", ref, err)
	}
}
