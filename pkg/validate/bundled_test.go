package validate

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// In a repo without a fleet.yaml, objects are held against the CRDs of the bundle's providers, of the newest version there.
func TestBundleWithoutFleetYAML(t *testing.T) {
	crds, err := os.ReadFile("testdata/crds/devclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := bundle.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"flux/v2.9.0/rbac.yaml":                                                     "kind: List\n",
		"cert-manager/v1.18.0/cert-manager.yaml":                                    "kind: List\n",
		"providers/cluster-api/v1.14.0/core-components.yaml":                        "kind: List\n",
		"providers/infrastructure-docker/v1.9.0/infrastructure-components.yaml":     "kind: List\n",
		"providers/infrastructure-docker/v1.14.0/infrastructure-components.yaml":    string(crds),
		"providers/infrastructure-docker/latest/infrastructure-components.yaml":     "kind: List\n",
		"providers/infrastructure-docker/v1.14.0/metadata.yaml":                     "a: [\n",
		"providers/something/v1.14.0/infrastructure-components.yaml":                "kind: List\n",
		"providers/infrastructure-aws/not-a-version/infrastructure-components.yaml": "kind: List\n",
	} {
		if err := w.AddFile(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	repo := write(t, map[string]string{
		"clusters/mgmt/flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, ref: {branch: main}, url: "https://git.example.com/acme/infra.git"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/mgmt, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`,
		"clusters/mgmt/dev.yaml": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevCluster
metadata: {name: dev, namespace: default}
spec:
  backand: {inMemory: {}}
`,
	})
	for _, given := range []string{"", dir} {
		result, err := Run(t.Context(), Options{Dir: repo, Bundle: given, Offline: true, CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		wanted := RuleUnknownField
		if given == "" {
			wanted = RuleUnknownKind
		}
		at := slices.IndexFunc(result.Findings, func(f diag.Finding) bool { return f.Rule == wanted })
		if at < 0 || result.Findings[at].File != "clusters/mgmt/dev.yaml" {
			t.Errorf("with bundle %q: %v, want %s", filepath.Base(given), result.Findings, wanted)
		}
		for _, f := range result.Findings {
			if f.Rule == RuleMissingCRDs || given != "" && f.Rule == RuleUnknownKind {
				t.Errorf("with bundle %q: %s [%s]", filepath.Base(given), f, f.Rule)
			}
		}
	}
}
