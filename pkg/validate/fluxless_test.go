package validate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Objects of Flux do nothing on a cluster without Flux. They are reported for clusters to which the management cluster's Flux applies them,
// but not where the repo brings Flux, or its CRDs, in another way.
func TestObjectsOfFluxWithoutFlux(t *testing.T) {
	known := knownKinds(t)
	const common = clusters + "staging/common/"
	crd := func(plural, kind, group string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group +
			"}\nspec:\n  group: " + group + "\n  names: {kind: " + kind + ", plural: " + plural + "}\n  scope: Namespaced\n  versions:\n  - {name: v1, served: true, " +
			"storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n---\n"
	}
	inStaging := scaffold.FeatureTarget{Layout: layoutOfTests, Environment: "staging"}
	onOne := inStaging
	onOne.Cluster = "one"
	inFeature := []string{"features/podinfo/namespaced/release.yaml", "features/podinfo/namespaced/source.yaml"}
	for name, tc := range map[string]struct {
		flux   scaffold.FluxMode
		target scaffold.FeatureTarget
		files  map[string]string
		says   string
	}{
		"through the management cluster": {scaffold.FluxRemote, inStaging, nil, "cluster edge runs no Flux of its own"},
		"for a cluster without Flux":     {scaffold.FluxNone, onOne, nil, "cluster one runs no Flux of its own"},
		"no cluster gets it":             {scaffold.FluxNone, inStaging, nil, ""},
		"a Flux of its own":              {scaffold.FluxOwn, inStaging, nil, ""},
		"the CRDs": {scaffold.FluxRemote, inStaging, map[string]string{
			common + "non-namespaced/crds.yaml": crd("helmreleases", "HelmRelease", "helm.toolkit.fluxcd.io") +
				crd("ocirepositories", "OCIRepository", "source.toolkit.fluxcd.io"),
		}, ""},
		"the operator": {scaffold.FluxRemote, inStaging, map[string]string{
			common + "namespaced/flux.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\n" +
				"metadata: {name: flux, namespace: flux-system}\n",
		}, ""},
		"the operator's chart": {scaffold.FluxRemote, inStaging, map[string]string{
			common + "apps/operator.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: flux-operator}\n" +
				"spec: {interval: 10m, chartRef: {kind: OCIRepository, name: operator}}\n",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := fleet(t)
			add := func(made []manifest.File, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range made {
					files[f.Path] = string(f.Content)
				}
			}
			add(scaffold.ClusterFiles(scaffold.ClusterOptions{
				Name: "edge", Layout: layoutOfTests, Environment: "staging", Flavour: "in-memory", Flux: tc.flux,
				Values: map[string]any{"kubernetesVersion": "v1.36.3"},
			}))
			add(scaffold.FeatureChartFiles("podinfo", scaffold.FeatureChart{URL: "oci://registry.example.com/charts/web", Version: "1.2.0"}))
			add(scaffold.FolderFiles(layoutOfTests, "staging"))
			for _, folder := range []string{"namespaced", "non-namespaced"} {
				files[clusters+"staging/edge/"+folder+"/.gitkeep"] = ""
			}
			enabled, err := scaffold.EnableFeature("podinfo", tc.target)
			add([]manifest.File{enabled}, err)
			maps.Copy(files, tc.files)
			var in []string
			for _, f := range validate(t, files, known).Findings {
				if f.Rule != RuleController {
					continue
				}
				in = append(in, f.File)
				if tc.says == "" || !strings.Contains(f.Summary, tc.says) || !strings.HasPrefix(f.Hint, "flavour in-memory cannot run Flux: ") {
					t.Errorf("%v (%s)", f, f.Hint)
				}
			}
			if slices.Sort(in); tc.says != "" && !slices.Equal(in, inFeature) {
				t.Errorf("it reports %q", in)
			}
		})
	}
}
