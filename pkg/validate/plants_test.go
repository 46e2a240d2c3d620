package validate

import (
	"fmt"
	"slices"
	"strings"
)

// plant is an error in a fleet that is valid without it.
type plant struct {
	name string
	rule string
	// file is changed: old, which is in it once, becomes becomes; an empty old is added at the end, or makes the file.
	file, old, becomes string
	// at is a text in the line that the finding is to be in: in place, or in file where that is empty.
	at, place string
	// also are rules that speak up as well.
	also []string
	// more is done to the files besides.
	more func(files map[string]string)
}

func plants() []plant {
	return slices.Concat(plantsInFiles(), plantsInObjects(), plantsRefused(), plantsInForms(), plantsMeant(), plantsOfClaims())
}

// plantsInFiles are errors that keep a folder from being built or applied, and those of references.
func plantsInFiles() []plant {
	return []plant{
		{
			name: "not YAML", rule: RuleSyntax, file: settings, old: "data:\n  domain: example.com",
			becomes: "data:\n  domain: [example.com", at: "  domain: [",
		},
		{
			name: "not YAML, a kustomization", rule: RuleSyntax, file: "features/web/namespaced/kustomization.yaml", old: "- deployment.yaml",
			becomes: "- deployment.yaml: [", at: "patches",
		},
		{name: "not text", rule: RuleSyntax, file: settings, old: "example.com", becomes: "\xff\xfe", at: "apiVersion"},
		{
			name: "a key twice", rule: RuleDuplicateField, file: settings, old: "  domain: example.com",
			becomes: "  domain: example.com\n  domain: example.org", at: "example.org",
		},
		{
			name: "a key twice in a cluster", rule: RuleDuplicateField, file: one, old: "  releaseName: one",
			becomes: "  releaseName: one\n  releaseName: two", at: "releaseName: two",
		},
		{
			name: "a chart's schema that cannot be read", rule: RuleSyntax, file: "charts/in-memory/values.schema.json", at: "\"b\"",
			more: func(files map[string]string) {
				files["charts/in-memory/values.schema.json"] = "{\n  \"title\": \"a\",\n  \"title\": \"b\"\n}\n"
			},
		},
		{name: "a bomb of aliases", rule: RuleLimit, file: platform + "bomb.yaml", becomes: bomb(), at: "a: &a"},
		{
			name: "a bomb that is called otherwise", rule: RuleLimit, file: "features/web/namespaced/notes.conf", becomes: "kind: A\n" + bomb(),
			at: "", more: func(files map[string]string) {
				files["features/web/namespaced/kustomization.yaml"] = strings.Replace(files["features/web/namespaced/kustomization.yaml"],
					"- deployment.yaml", "- deployment.yaml\n- notes.conf", 1)
			},
		},
		{
			name: "a bomb in a patch", rule: RuleLimit, file: "features/web/namespaced/kustomization.yaml", old: "- deployment.yaml\n",
			becomes: "- deployment.yaml\ntransformers:\n- |\n" + indent(bombingTransformer()), at: "- |",
		},
		{
			name: "a bomb in a patch of Flux", rule: RuleLimit, file: mgmt + "clusters-staging.yaml",
			becomes: "  patches:\n  - patch: |\n" + indent(indent(indent("kind: A\n"+bomb()))), at: "apiVersion: kustomize",
		},
		{
			name: "unknown field of fleet.yaml", rule: RuleUnknownField, file: "fleet.yaml", old: "  environments:", becomes: "  environs:",
			at: "environs", also: []string{RuleValue},
		},
		{
			name: "unknown field of a cluster", rule: RuleUnknownField, file: one, old: "  releaseName: one",
			becomes: "  releaseNam: one", at: "releaseNam:",
		},
		{
			name: "unknown field of a deployment", rule: RuleUnknownField, file: web, old: "  replicas: 1",
			becomes: "  replicaz: 1", at: "replicaz",
		},
		{
			name: "unknown field, deep", rule: RuleUnknownField, file: web, old: "        image: web:v1",
			becomes: "        imag: web:v1", at: "imag:",
		},
		{
			name: "unknown field of a kustomization", rule: RuleUnknownField, file: "features/web/namespaced/kustomization.yaml",
			becomes: "resourcs: []\n", at: "resourcs",
		},
		{
			name: "unknown field of a kustomization, deep", rule: RuleUnknownField, file: "features/web/namespaced/kustomization.yaml",
			becomes: "images:\n- name: web\n  newTags: v2\n", at: "newTags",
		},
		{
			name: "a field of a kustomization in another case", rule: RuleUnknownField, file: "features/web/namespaced/kustomization.yaml",
			old: "resources:", becomes: "RESOURCES:", at: "RESOURCES",
		},
		{
			name: "a merge key in the kustomization of Flux", rule: RuleUnknownField, file: mgmt + "flux-system/kustomization.yaml",
			becomes: "<<: {bases: [https://example.com/x]}\n", at: "<<",
		},
		{
			name: "a component from elsewhere", rule: RuleKustomize, file: apps, old: "  path: ./features/web/namespaced\n",
			becomes: "  path: ./features/web/namespaced\n  components:\n  - https://example.com/x?ref=--upload-pack=date\n", at: "  - https://",
		},
		{
			name: "unknown field of a custom object", rule: RuleUnknownField, file: widget, old: "    replicas: 1",
			becomes: "    replicaz: 1", at: "replicaz",
		},
		{
			name: "unknown field of metadata", rule: RuleUnknownField, file: widget, old: "  name: one",
			becomes: "  name: one\n  lables: {a: b}", at: "lables",
		},
		{
			name: "unknown field of what nothing applies", rule: RuleUnknownField, file: "features/later/namespaced/account.yaml",
			becomes: "automountToken: true\n", at: "automountToken",
		},
		{
			name: "unknown value of a chart", rule: RuleUnknownField, file: one, old: "    kubernetesVersion:",
			becomes: "    kubernetesVersio: v1\n    kubernetesVersion:", at: "Versio:",
		},
		{name: "wrong type", rule: RuleType, file: web, old: "image: web:v1", becomes: "image: [web]", at: "image: [web]"},
		{
			name: "wrong type of a custom object", rule: RuleType, file: widget, old: "    replicas: 1",
			becomes: "    replicas: one", at: "replicas: one",
		},
		{
			name: "wrong type of a chart's value", rule: RuleValue, file: two, old: "        replicas: 3", becomes: "        replicas: three",
			at: "replicas: three",
		},
		{name: "required field", rule: RuleRequired, file: widget, old: "  size: small\n", becomes: "", at: "spec:"},
		{name: "bad value", rule: RuleValue, file: widget, old: "size: small", becomes: "size: smal", at: "smal"},
		{
			name: "bad value of a chart", rule: RuleValue, file: one, old: "kubernetesVersion: v1.36.3",
			becomes: "kubernetesVersion: latest", at: "latest",
		},
		{name: "twice in a list", rule: RuleDuplicate, file: widget, old: "[a, b]", becomes: "[a, a]", at: "[a, a]"},
		{
			name: "twice in the repo", rule: RuleDuplicate, file: platform + "again.yaml",
			becomes: "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: platform\n", at: "apiVersion", place: platform + "namespace.yaml",
		},
		{
			name: "made twice", rule: RuleConflict, file: "features/base/namespaced/again.yaml",
			becomes: "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: quota\n  namespace: platform\n", at: "apiVersion",
			more: func(files map[string]string) {
				files["features/web/namespaced/again.yaml"] = files["features/base/namespaced/again.yaml"]
				delete(files, "features/base/namespaced/again.yaml")
				files["features/web/namespaced/kustomization.yaml"] = strings.Replace(files["features/web/namespaced/kustomization.yaml"],
					"- deployment.yaml", "- deployment.yaml\n- again.yaml", 1)
			}, place: "features/web/namespaced/again.yaml",
		},
		{
			name: "made by a chart as well", rule: RuleConflict, file: one,
			becomes: "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: DevCluster\nmetadata:\n  name: one\n  namespace: one\n" +
				"spec:\n  backend: {inMemory: {}}\n", at: "apiVersion: infrastructure.cluster",
		},
		{
			name: "version that is not served", rule: RuleAPIVersion, file: widget, old: "example.com/v1",
			becomes: "example.com/v2", at: "example.com/v2",
		},
		{
			name: "version that is gone", rule: RuleAPIVersion, file: web, old: "apps/v1", becomes: "apps/v7", at: "apps/v7",
			more: func(files map[string]string) {
				files["features/web/namespaced/patch.yaml"] = strings.Replace(files["features/web/namespaced/patch.yaml"], "apps/v1", "apps/v7", 1)
			},
		},
		{
			name: "version that is deprecated", rule: RuleDeprecated, file: widget, old: "example.com/v1",
			becomes: "example.com/v1beta1", at: "v1beta1",
		},
		{name: "a rule of the CRD", rule: RuleSchemaRule, file: widget, old: "min: 1", becomes: "min: 4", at: "spec:"},
		{name: "a name", rule: RuleMetadata, file: widget, old: "  name: one", becomes: "  name: Number_One", at: "Number_One"},
		{name: "a label", rule: RuleMetadata, file: web, old: "    app: web", becomes: "    app: not a label", at: "app: not a label"},
		{
			name: "unknown kind", rule: RuleUnknownKind, file: platform + "gadget.yaml",
			becomes: "apiVersion: gadgets.example.com/v1\nkind: Gadget\nmetadata: {name: a, namespace: platform}\n", at: "kind: Gadget",
		},
		{
			name: "kind whose controller Flux lacks", rule: RuleController, file: platform + "image.yaml", at: "kind: ImageRepository",
			becomes: "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: web, namespace: flux-system}\nspec: " +
				"{image: registry.example.com/web, interval: 5m}\n",
		},
		{
			name: "CRD that no API server takes", rule: RuleBadCRD, file: platform + "crd.yaml",
			becomes: "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.example.com}\nspec: {}\n",
			at:      "apiVersion", also: []string{RuleAPIVersion},
		},
		{
			name: "CRD with a rule that cannot be", rule: RuleBadCRD, file: platform + "crd.yaml", at: "apiVersion: apiextensions",
			becomes: "# three objects\n---\n" + gizmos + gizmo("a") + gizmo("b") + gizmo("c"),
		},
		{
			name: "CRD without objects that refuses its own default", rule: RuleBadCRD, file: platform + "crd.yaml",
			becomes: wrongDefault, at: "apiVersion: apiextensions",
		},
		{
			name: "kustomize finds no file", rule: RuleMissingPath, file: "features/web/namespaced/kustomization.yaml", old: "- deployment.yaml",
			becomes: "- deploymnt.yaml", at: "",
		},
		{
			name: "kustomize cannot build", rule: RuleKustomize, file: "features/web/namespaced/patch.yaml", old: "name: web", becomes: "name: wob",
			at: "", place: "features/web/namespaced/kustomization.yaml",
		},
		{
			name: "chart does not render", rule: RuleHelm, file: "charts/in-memory/templates/cluster.yaml", becomes: "{{ fail \"no\" }}\n",
			at: "apiVersion: helm", place: one, also: []string{RuleHelm},
		},
		{name: "chart is missing", rule: RuleMissingChart, file: shared, old: "./charts/in-memory", becomes: "./charts/in-memry", at: "in-memry"},
		{
			name: "chart of its own is missing", rule: RuleMissingChart, file: one, old: sharedRef,
			becomes: strings.Replace(ownChart, "in-memory", "in-memry", 1), at: "in-memry",
		},
		{
			name: "shared chart is missing", rule: RuleMissingSource, file: one, old: "    name: staging-in-memory",
			becomes: "    name: staging-in-memry", at: "staging-in-memry",
		},
		{
			name: "shared chart of another environment", rule: RuleChartName, file: one, old: "    name: staging-in-memory",
			becomes: "    name: production-in-memory", at: "production-in-memory", also: []string{RuleChannel},
		},
		{
			name: "shared chart is misnamed", rule: RuleChartName, file: shared, old: "  name: staging-in-memory",
			becomes: "  name: staging-in-memori", at: "staging-in-memori", more: func(files map[string]string) {
				files[one] = strings.Replace(files[one], "    name: staging-in-memory", "    name: staging-in-memori", 1)
			},
		},
		{
			name: "path is missing", rule: RuleMissingPath, file: apps, old: "./features/web/namespaced",
			becomes: "./features/wob/namespaced", at: "features/wob",
		},
		{
			name: "source is missing", rule: RuleMissingSource, file: apps,
			old:     "  path: ./features/base/namespaced\n  sourceRef:\n    kind: GitRepository\n    name: flux-system",
			becomes: "  path: ./features/base/namespaced\n  sourceRef:\n    kind: GitRepository\n    name: flux-systm", at: "flux-systm",
		},
		{
			name: "secret is missing", rule: RuleMissingSecret, file: apps, old: "    name: registry",
			becomes: "    name: registri", at: "registri",
		},
		{
			name: "config map is missing", rule: RuleMissingConfig, file: apps, old: "      name: settings", becomes: "      name: setings",
			at: "setings", also: []string{RuleVariable},
		},
		{
			name: "identity is missing", rule: RuleMissingID, file: platform + "aws.yaml",
			becomes: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {name: a, namespace: platform}\nspec:\n  " +
				"identityRef:\n    kind: AWSClusterRoleIdentity\n    name: nobody\n", at: "nobody", also: []string{RuleUnknownKind},
		},
		{
			name: "identity of another environment", rule: RuleIdentityNS, file: platform + "identity.yaml",
			becomes: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: VSphereClusterIdentity\nmetadata: {name: of}\nspec:\n  " +
				"secretName: of\n  allowedNamespaces: {selector: {matchLabels: {fleetctl.dev/environment: production}}}\n---\napiVersion: " +
				"infrastructure.cluster.x-k8s.io/v1beta1\nkind: VSphereCluster\nmetadata: {name: a, namespace: one}\nspec:\n  identityRef: {kind: " +
				"VSphereClusterIdentity, name: of}\n", at: "identityRef: {kind: VSphereClusterIdentity, name: of}",
			also: []string{RuleUnknownKind, RuleMissingID},
		},
		{
			name: "namespace is missing", rule: RuleMissingNS, file: settings, old: "  name: settings\n  namespace: platform",
			becomes: "  name: settings\n  namespace: platform-x", at: "platform-x", also: []string{RuleMissingConfig, RuleVariable},
		},
		{
			name: "no namespace at all", rule: RuleMissingNS, file: "features/base/namespaced/quota.yaml", old: "  namespace: platform\n",
			becomes: "", at: "metadata:",
		},
		{
			name: "network is missing", rule: RuleMissingNetwork, file: "charts/in-memory/Chart.yaml", old: "annotations:\n",
			becomes: "annotations:\n  fleetctl.dev/cni: calico\n", at: "cni: calico",
		},
		{name: "dependency is missing", rule: RuleMissingDepends, file: apps, old: "  - name: base", becomes: "  - name: bass", at: "bass"},
		{
			name: "dependencies go round", rule: RuleDependsCycle, file: apps, old: "  path: ./features/base/namespaced\n",
			becomes: "  path: ./features/base/namespaced\n  dependsOn: [{name: web}]\n", at: "dependsOn: [{name: web}]",
		},
		{
			name: "cluster's name", rule: RuleClusterName, file: one, old: "  releaseName: one", becomes: "  releaseName: uno",
			at: "releaseName: uno",
		},
		{
			name: "cluster's namespace", rule: RuleClusterName, file: one, old: "  namespace: one", becomes: "  namespace: platform",
			at: "namespace: platform",
		},
		{
			name: "two clusters of a name", rule: RuleDuplicateName, file: clusters + "staging/two/cluster.yaml", becomes: "",
			at: "apiVersion: helm", more: func(files map[string]string) {
				files[clusters+"staging/two/cluster.yaml"] = strings.ReplaceAll(files[two], "name: production-in-memory", "name: staging-in-memory")
			},
		},
		{
			name: "folder without a cluster", rule: RuleClusterFile, file: clusters + "staging/three/kluster.yaml",
			becomes: "apiVersion: v1\nkind: Namespace\nmetadata: {name: three}\n", at: "apiVersion",
		},
		{
			name: "cluster file without a cluster", rule: RuleClusterFile, file: clusters + "staging/three/cluster.yaml",
			becomes: "apiVersion: v1\nkind: Namespace\nmetadata: {name: three}\n", at: "apiVersion",
		},
		{
			name: "unknown environment", rule: RuleEnvironment, file: clusters + "stagin/three/cluster.yaml", becomes: "", at: "apiVersion: v1",
			more: func(files map[string]string) {
				files[clusters+"stagin/three/cluster.yaml"] = strings.ReplaceAll(files[one], "name: one", "name: three")
				files[clusters+"stagin/three/cluster.yaml"] = strings.ReplaceAll(files[clusters+"stagin/three/cluster.yaml"],
					"namespace: one", "namespace: three")
				files[clusters+"stagin/three/cluster.yaml"] = strings.ReplaceAll(files[clusters+"stagin/three/cluster.yaml"],
					"releaseName: one", "releaseName: three")
			}, also: []string{RuleNotApplied},
		},
		{
			name: "provider that nobody knows", rule: RuleValue, file: "fleet.yaml", old: "      version: v1.14.2\n",
			becomes: "      version: v1.14.2\n    - name: awss\n", at: "name: awss",
		},
		{
			name: "folder of no management cluster", rule: RuleFolder, file: "providers/aws/v1/mgmt/namespace.yaml",
			becomes: "apiVersion: v1\nkind: Namespace\nmetadata: {name: aws}\n", at: "apiVersion",
		},
	}
}

// gitSource is a source of Flux at a revision.
func gitSource(ref string) string {
	return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: a, namespace: platform}\nspec:\n  interval: 1m\n" +
		"  url: https://example.com/a\n  ref:\n    " + ref + "\n"
}

// rawCluster is a cluster without a chart.
const rawCluster = `apiVersion: v1
kind: Namespace
metadata: {name: raw, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: raw, namespace: raw, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: raw}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: raw}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevCluster
metadata: {name: raw, namespace: raw, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec: {backend: {inMemory: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: raw, namespace: raw, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec:
  version: v1.36.3
  machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachineTemplate, name: raw}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: raw, namespace: raw}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: raw, namespace: raw, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec:
  clusterName: raw
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      clusterName: raw
      version: v1.36.1
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: raw}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachineTemplate, name: raw}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: raw, namespace: raw}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {name: x}}}}}
`

// bomb is a YAML file that expands to more than the memory of any machine.
func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [" + strings.Repeat("x, ", 8) + "x]\n")
	for c := 'b'; c <= 'l'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	return b.String()
}

// bombingTransformer has the bomb two texts deep.
func bombingTransformer() string {
	return "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npatch: |\n" + indent("kind: A\n"+bomb())
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
