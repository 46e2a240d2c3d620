package roots

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

const applies = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: `

// rootShapes are repos in the shapes that people give them, and the folders in which the Flux of their clusters begins.
var rootShapes = []struct {
	name, files string
	roots       []string
}{
	{
		"flux bootstrap", `
-- clusters/a/flux-system/kustomization.yaml --
resources: [gotk-sync.yaml]
-- clusters/a/flux-system/gotk-sync.yaml --
` + applies + `flux-system, namespace: flux-system}
spec: {path: ./clusters/a, sourceRef: {kind: GitRepository, name: flux-system}}
-- clusters/b/flux-system/gotk-sync.yaml --
` + applies + `flux-system, namespace: flux-system}
spec: {path: ./clusters/b, sourceRef: {kind: GitRepository, name: flux-system}}
-- clusters/b/kustomization.yaml --
resources: [apps.yaml]
-- clusters/b/apps.yaml --
` + applies + `apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
`, []string{"clusters/a", "clusters/b"},
	},
	{
		"the values of flux-instance in a HelmRelease; Kustomizations stand beside what they apply", `
-- flux/cluster/ks.yaml --
` + applies + `apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
-- apps/kustomization.yaml --
resources: [web/ks.yaml, flux/ks.yaml]
-- apps/flux/ks.yaml --
` + applies + `flux, namespace: flux-system}
spec: {path: ./apps/flux, sourceRef: {kind: GitRepository, name: flux-system}}
-- apps/flux/kustomization.yaml --
resources: [release.yaml]
-- apps/flux/release.yaml --
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: flux-instance}
spec:
  values:
    instance:
      sync: {kind: GitRepository, url: "https://example.com/a.git", ref: refs/heads/main, path: flux/cluster}
-- apps/web/ks.yaml --
` + applies + `web, namespace: flux-system}
spec: {path: ./apps/web, sourceRef: {kind: GitRepository, name: flux-system}}
-- apps/web/kustomization.yaml --
resources: [web.yaml]
`, []string{"flux/cluster"},
	},
	{
		"the same values in a file", `
-- flux/cluster/ks.yaml --
` + applies + `apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
-- bootstrap/values.yaml --
instance:
  distribution: {artifact: "oci://ghcr.io/controlplaneio-fluxcd/flux-operator-manifests"}
  sync:
    kind: GitRepository
    path: ./flux/cluster
`, []string{"flux/cluster"},
	},
	{
		"the same values in a ResourceSet", `
-- flux/cluster/ks.yaml --
` + applies + `apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
-- flux/set.yaml --
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: flux}
spec:
  resources:
  - apiVersion: helm.toolkit.fluxcd.io/v2
    kind: HelmRelease
    metadata: {name: flux-instance}
    spec: {values: {instance: {sync: {path: flux/cluster}}}}
`, []string{"flux/cluster"},
	},
	{
		"Kustomizations beside what they apply, and nothing that says where Flux begins", `
-- flux/kustomization.yaml --
resources: [apps.yaml]
-- flux/apps.yaml --
` + applies + `apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
-- apps/kustomization.yaml --
resources: [web/ks.yaml]
-- apps/web/ks.yaml --
` + applies + `web, namespace: flux-system}
spec: {path: ./apps/web, sourceRef: {kind: GitRepository, name: flux-system}}
-- apps/web/kustomization.yaml --
resources: [web.yaml]
`, []string{"flux"},
	},
	{
		"a tenant's sync, which has no path, and bases that overlays apply", `
-- clusters/production/tenants.yaml --
` + applies + `tenants, namespace: flux-system}
spec: {path: ./tenants/production, sourceRef: {kind: GitRepository, name: flux-system}}
-- clusters/staging/tenants.yaml --
` + applies + `tenants, namespace: flux-system}
spec: {path: ./tenants/staging, sourceRef: {kind: GitRepository, name: flux-system}}
-- tenants/base/team/kustomization.yaml --
resources: [sync.yaml]
-- tenants/base/team/sync.yaml --
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: team, namespace: apps}
spec: {url: "https://example.com/team"}
---
` + applies + `team, namespace: apps}
spec: {sourceRef: {kind: GitRepository, name: team}}
-- tenants/production/kustomization.yaml --
resources: [../base/team]
-- tenants/staging/kustomization.yaml --
resources: [../base/team]
`, []string{"clusters/production", "clusters/staging"},
	},
	{
		"Kustomizations with variables that another cluster's Flux has", `
-- mgmt/clusters.yaml --
` + applies + `clusters, namespace: flux-system}
spec: {path: ./clusters, sourceRef: {kind: GitRepository, name: flux-system}}
-- clusters/common/kustomization.yaml --
resources: []
-- clusters/common/apps/folders.yaml --
` + applies + `common, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
---
` + applies + `cluster, namespace: flux-system}
spec: {path: "./apps/${cluster_name}", sourceRef: {kind: GitRepository, name: flux-system}}
`, []string{"mgmt"},
	},
	{
		"a path that leads out of the repo, and files that are no YAML", `
-- clusters/a/apps.yaml --
` + applies + `apps, namespace: flux-system}
spec: {path: ../../etc, sourceRef: {kind: GitRepository, name: flux-system}}
-- clusters/a/kustomization.yaml --
resources: [apps.yaml, ../../../../etc, /etc, "https://example.com/x", 7, {a: b}, .]
-- b/values.yaml --
fluxcd: &a [*a, instance: sync:]
-- c/values.yaml --
fluxcd:
instance: [sync: {path: x}]
`, []string{"clusters/a"},
	},
}

func TestRoots(t *testing.T) {
	for _, shape := range rootShapes {
		t.Run(shape.name, func(t *testing.T) {
			files := fstest.MapFS{}
			for _, f := range txtar.Parse([]byte(shape.files)).Files {
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			var found []string
			for _, r := range In(files) {
				found = append(found, r.Path)
			}
			if !slices.Equal(found, shape.roots) {
				t.Errorf("Flux begins in %v, not in %v", shape.roots, found)
			}
		})
	}
}

// A repo of releases that the Flux of another repo applies gets a hint that says what to do.
func TestAppliedElsewhere(t *testing.T) {
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\n"
	for name, c := range map[string]struct{ files, hint string }{
		"overlays": {"-- apps/base/web/kustomization.yaml --\nresources: [release.yaml]\n-- apps/base/web/release.yaml --\n" + release +
			"-- apps/staging/kustomization.yaml --\nresources: [../base/web]\n", "such as path: apps/staging "},
		"no kustomization.yaml": {"-- apps/release.yaml --\n" + release, "such as path: . "},
		"no Flux":               {"-- apps/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "`fleetctl init` makes one"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for _, f := range txtar.Parse([]byte(c.files)).Files {
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			_, err := Assume(files, "/repo")
			if got := diag.Hint(err); !errors.Is(err, ErrNoFlux) || !strings.Contains(got, c.hint) {
				t.Errorf("%v (%s)", err, got)
			}
		})
	}
}
