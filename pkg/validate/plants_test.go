package validate

import (
	"fmt"
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
		{name: "a label", rule: RuleMetadata, file: web, old: "    app: web", becomes: "    app: not a label", at: "labels:"},
		{
			name: "unknown kind", rule: RuleUnknownKind, file: platform + "gadget.yaml",
			becomes: "apiVersion: gadgets.example.com/v1\nkind: Gadget\nmetadata: {name: a, namespace: platform}\n", at: "kind: Gadget",
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
			name: "folder of no management cluster", rule: RuleFolder, file: "providers/aws/v1/mgmt/namespace.yaml",
			becomes: "apiVersion: v1\nkind: Namespace\nmetadata: {name: aws}\n", at: "apiVersion",
		},
		{name: "folder that is misspelt", rule: RuleFolder, file: "feature/web/a.yaml", becomes: "a: b\n", at: "a: b"},
		{
			name: "environment that nothing applies", rule: RuleNotApplied, file: mgmt + "clusters-staging.yaml",
			old: "  path: ./providers/docker/v1/clusters/staging", becomes: "  path: ./providers/docker/v1/clusters/staging/common/apps",
			at: "apiVersion: v1", place: one,
		},
		{
			name: "environment off its channel", rule: RuleChannel, file: mgmt + "clusters-production.yaml",
			old: "  sourceRef:\n    kind: GitRepository\n    name: release", becomes: "  sourceRef:\n    kind: GitRepository\n    name: flux-system",
			at: "    name: flux-system",
		},
		{
			name: "chart off its channel", rule: RuleChannel, file: mgmt + "clusters-production.yaml",
			old: "      kind: HelmChart\n      name: production-.*", becomes: "      kind: HelmChart\n      name: staging-.*",
			at: "    name: flux-system", place: clusters + "production/chart-in-memory.yaml",
		},
		{
			name: "chart of its own off its channel", rule: RuleChannel, file: two, old: strings.Replace(sharedRef, "staging", "production", 1),
			becomes: ownChart, at: "        name: flux-system",
		},
		{
			name: "tag of another channel", rule: RuleChannel, file: mgmt + "sources/release/gitrepository.yaml", old: "tag: v1.0.0",
			becomes: "tag: nightly-1", at: "nightly-1",
		},
		{
			name: "production on a branch", rule: RuleProduction, file: mgmt + "sources/release/gitrepository.yaml", old: "tag: v1.0.0",
			becomes: "branch: main", at: "ref:",
		},
		{
			name: "production on a branch, in fleet.yaml", rule: RuleProduction, file: "fleet.yaml", old: "    channel: release\n", becomes: "",
			at: "name: production",
		},
		{
			name: "production on a branch, by the name of a ref", rule: RuleProduction, file: mgmt + "sources/release/gitrepository.yaml",
			old: "tag: v1.0.0", becomes: "tag: v1.0.0\n    name: refs/heads/main", at: "ref:",
		},
		{
			name: "production on a branch, by a source of another name", rule: RuleProduction, file: mgmt + "clusters-production.yaml",
			old: "      name: production-.*\n      labelSelector: fleetctl.dev/channel!=own\n    patch: |\n      - op: replace\n        path: " +
				"/spec/sourceRef/name\n        value: release", becomes: "      name: production-.*\n      labelSelector: " +
				"fleetctl.dev/channel!=own\n    patch: |\n      - op: replace\n        path: /spec/sourceRef/name\n        value: trunk",
			at: "    name: flux-system", place: clusters + "production/chart-in-memory.yaml", more: func(files map[string]string) {
				files[platform+"trunk.yaml"] = strings.NewReplacer("name: release", "name: trunk", "tag: v1.0.0", "branch: main").Replace(
					files[mgmt+"sources/release/gitrepository.yaml"])
			},
		},
		{
			name: "production on a branch, on the cluster itself", rule: RuleProduction, file: "features/source/source.yaml", at: "ref:",
			more: func(files map[string]string) {
				files["features/source/source.yaml"] = strings.NewReplacer("name: release", "name: flux-system", "tag: v1.0.0", "branch: main").Replace(
					files[mgmt+"sources/release/gitrepository.yaml"])
				files[clusters+"production/two/flux.yaml"] =
					"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: two-source, namespace: two}\nspec:\n  interval: " +
						"10m\n  prune: true\n  path: ./features/source\n  sourceRef: {kind: GitRepository, name: release, namespace: flux-system}\n  " +
						"kubeConfig: {secretRef: {name: two-kubeconfig}}\n"
			},
		},
		{
			name: "secret in clear", rule: RulePlainSecret, file: settings, old: "ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]",
			becomes: "c2VjcmV0", at: "c2VjcmV0",
		},
		{
			name: "secret made of values in clear", rule: RulePlainSecret, file: "features/web/namespaced/kustomization.yaml",
			becomes: "secretGenerator:\n- name: s\n  namespace: platform\n  literals: [a=b]\n", at: "literals",
		},
		{
			name: "secret in a list", rule: RulePlainSecret, file: platform + "list.yaml",
			becomes: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s, namespace: platform}\n  " +
				"stringData:\n    a: hunter2\n", at: "hunter2",
		},
		{
			name: "secret in JSON", rule: RulePlainSecret, file: "docs/secret.json",
			becomes: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}`, at: "apiVersion",
		},
		{
			name: "secret made of a file in clear", rule: RulePlainSecret, file: "features/web/namespaced/kustomization.yaml",
			becomes: "secretGenerator:\n- name: s\n  namespace: platform\n  envs: [web.env]\n", at: "web.env", more: func(files map[string]string) {
				files["features/web/namespaced/web.env"] = "PASSWORD=hunter2\n"
			},
		},
		{name: "secret that a patch fills", rule: RulePlainSecret, file: platform + "empty.yaml", becomes: "apiVersion: v1\nkind: " +
			"Secret\nmetadata: {name: s, namespace: platform}\n", at: "apiVersion", more: func(files map[string]string) {
			files[mgmt+"flux-system/gotk-sync.yaml"] += "  patches:\n  - target: {kind: Secret, name: s}\n    patch: |\n      - {op: add, path: /stringData, value: {a: hunter2}}\n"
		}},
		{
			name: "secret that a chart makes", rule: RulePlainSecret, file: "charts/in-memory/templates/secret.yaml",
			becomes: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: hunter2, b: {{ randAlphaNum 12 }}}\n",
			at:      "apiVersion: helm", place: one, also: []string{RulePlainSecret},
		},
		{
			name: "private key", rule: RulePlainSecret, file: "docs/key.txt",
			becomes: "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEAxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", at: "BEGIN",
		},
		{
			name:    "private key in base64",
			rule:    RulePlainSecret,
			file:    "docs/kubeconfig",
			becomes: "client-key-data: LS0tLS1CRUdJTi" + "BSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBeHh4eHh4eHh4eHh4eHg=\n",
			at:      "client-key-data",
		},
		{
			name: "age key", rule: RulePlainSecret, file: "docs/age.txt",
			becomes: "# key\nAGE-SECRET-" + "KEY-1" + strings.Repeat("Q", 58) + "\n", at: "SECRET",
		},
		{name: "token", rule: RulePlainSecret, file: "docs/notes.md", becomes: "use ghp_" + strings.Repeat("a1", 18) + " for it\n", at: "use"},
		{
			name: "the tag of another fleet", rule: RuleFleetTag, file: one, old: "  values:\n",
			becomes: "  values:\n    labels:\n      fleetctl.dev/fleet: 22222222-2222-2222-2222-222222222222\n",
			at:      "fleetctl.dev/fleet:", more: func(files map[string]string) {
				files["fleet.id"] = "11111111-1111-1111-1111-111111111111\n"
			},
		},
		{
			name: "the tag of a fleet, and the repo has none", rule: RuleFleetTag, file: one, old: "  values:\n",
			becomes: "  values:\n    labels:\n      fleetctl.dev/fleet: 22222222-2222-2222-2222-222222222222\n", at: "fleetctl.dev/fleet:",
		},
		{
			name: "the tag of another fleet by a patch", rule: RuleFleetTag, file: mgmt + "clusters-staging.yaml", place: one, at: "  values:",
			more: func(files map[string]string) {
				files["fleet.id"] = "11111111-1111-1111-1111-111111111111\n"
			}, becomes: "  patches:\n  - target: {kind: HelmRelease, name: one}\n    patch: |\n      - {op: add, path: /spec/values/labels, " +
				"value: {fleetctl.dev/fleet: 22222222-2222-2222-2222-222222222222}}\n",
		},
		{
			name: "cluster without protection", rule: RulePrune, file: one,
			old:     "kind: HelmRelease\nmetadata:\n  name: one\n  namespace: one\n  annotations:\n    kustomize.toolkit.fluxcd.io/prune: disabled",
			becomes: "kind: HelmRelease\nmetadata:\n  name: one\n  namespace: one\n  annotations:\n    kustomize.toolkit.fluxcd.io/prune: enabled",
			at:      "prune: enabled",
		},
		{
			name: "namespace without protection", rule: RulePrune, file: one,
			old:     "    # Removing this file from Git does not delete the cluster.\n    kustomize.toolkit.fluxcd.io/prune: disabled",
			becomes: "    a: b", at: "annotations:",
		},
		{
			name: "protection that a patch takes away", rule: RulePrune, file: mgmt + "clusters-staging.yaml",
			becomes: "  patches:\n  - target: {kind: Namespace}\n    patch: |\n      - {op: remove, path: /metadata/annotations}\n",
			at:      "    kustomize.toolkit.fluxcd.io/prune", place: one,
		},
		{
			name: "Cluster that goes with its release", rule: RulePrune, file: "charts/in-memory/templates/_cluster.tpl",
			old: "helm.sh/resource-policy: keep", becomes: "a: b", at: "kind: Cluster", place: "charts/in-memory/templates/cluster.yaml",
		},
		{
			name: "Cluster without a chart, without protection", rule: RulePrune, file: platform + "cluster.yaml",
			becomes: "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: c, namespace: platform}\nspec:\n  infrastructureRef: " +
				"{apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: c}\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n" +
				"kind: DevCluster\nmetadata: {name: c, namespace: platform}\nspec: {backend: {inMemory: {}}}\n", at: "metadata:",
		},
		{
			name: "repo that is hidden from Flux", rule: RuleNothing, file: ".sourceignore", becomes: "/*\n", at: "managementClusters",
			place: "fleet.yaml", also: []string{RuleNotApplied},
		},
		{
			name: "patch that finds nothing", rule: RulePatch, file: "features/web/namespaced/kustomization.yaml",
			becomes: "- target: {kind: Deployment, name: wbe}\n  patch: |\n    - {op: add, path: /spec/replicas, value: 2}\n",
			at:      "- target: {kind: Deployment, name: wbe}",
		},
		{
			name: "patch of a Flux Kustomization that finds nothing", rule: RulePatch, file: mgmt + "flux-system/gotk-sync.yaml",
			becomes: "  patches:\n  - target: {kind: ConfigMap, name: nowhere}\n    patch: |\n      - {op: add, path: /data/a, value: b}\n",
			at:      "apiVersion: kustomize",
		},
		{
			name: "service of no type", rule: RuleValue, file: "features/web/namespaced/deployment.yaml",
			becomes: "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: platform}\nspec:\n  type: LoadBalance\n  ports: " +
				"[{port: 80}]\n", at: "type: LoadBalance",
		},
		{
			name: "range of a source that is none", rule: RuleValue, file: "features/source/source.yaml", at: "semver: xx",
			becomes: gitSource("semver: xx"),
		},
		{
			name: "range of a chart that is none", rule: RuleValue, file: "features/source/release.yaml", at: "version: latest",
			becomes: "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: platform}\nspec:\n  interval: " +
				"10m\n  chart:\n    spec:\n      chart: a\n      version: latest\n      sourceRef: {kind: HelmRepository, name: a}\n",
		},
		{
			name: "port that is none", rule: RuleValue, file: "features/web/namespaced/deployment.yaml",
			becomes: "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: platform}\nspec:\n  ports:\n  - port: 70000\n",
			at:      "port: 70000",
		},
		{
			name: "version that is gone", rule: RuleAPIVersion, file: "features/web/namespaced/deployment.yaml",
			becomes: "---\napiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: web, namespace: platform}\nspec:\n  schedule: '* * * * *'\n",
			at:      "apiVersion: batch",
		},
		{
			name: "kind that is gone", rule: RuleAPIVersion, file: platform + "psp.yaml",
			becomes: "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: web}\nspec: {}\n", at: "apiVersion: policy",
		},
		{
			name:    "control plane that is not there",
			rule:    RuleClusterRef,
			file:    platform + "cluster.yaml",
			becomes: strings.Replace(rawCluster, "kind: KubeadmControlPlane, name: raw", "kind: KubeadmControlPlane, name: row", 1),
			at:      "name: row",
		},
		{
			name: "pods and Services in one network", rule: RuleNetworks, file: platform + "cluster.yaml",
			becomes: strings.Replace(rawCluster, "spec:\n",
				"spec:\n  clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/8]}, services: {cidrBlocks: [10.96.0.0/12]}}\n", 1), at: "clusterNetwork",
		},
		{
			name: "what a provider's webhook refuses", rule: RuleRefused, file: platform + "aws.yaml",
			becomes: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachineTemplate\nmetadata: {name: raw, namespace: platform}\n" +
				"spec:\n  template:\n    spec:\n      instanceType: t3.large\n      rootVolume:\n        size: 80\n        type: io1\n",
			at: "type: io1", also: []string{RuleUnknownKind},
		},
		{
			name: "workers newer than the control plane", rule: RuleSkew, file: platform + "cluster.yaml",
			becomes: strings.Replace(rawCluster, "version: v1.36.1", "version: v1.37.0", 1), at: "version: v1.37.0",
		},
		{
			name: "lock that is old", rule: RuleLock, file: "fleet.lock",
			becomes: "apiVersion: fleetctl.dev/v1alpha1\nkind: FleetLock\ncomponents:\n- {name: docker, type: infrastructure, version: v1.13.0, " +
				"sha256: " + strings.Repeat("a", 64) + "}\n", at: "docker", also: []string{RuleLock},
		},
		{
			name: "ignore without a reason", rule: RuleIgnore, file: widget, old: "  size: small",
			becomes: "  size: smal # fleetctl:ignore invalid-value", at: "smal", also: []string{RuleValue},
		},
		{
			name: "ignore of no rule", rule: RuleIgnore, file: widget, old: "  size: small",
			becomes: "  size: small # fleetctl:ignore invalid-valu we like it", at: "we like it",
		},
		{
			name: "ignore of nothing", rule: RuleIgnoreUnused, file: widget, old: "  size: small",
			becomes: "  size: small # fleetctl:ignore invalid-value we like it", at: "we like it",
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
metadata: {name: raw, namespace: raw}
spec: {backend: {inMemory: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: raw, namespace: raw}
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
metadata: {name: raw, namespace: raw}
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

// gizmos is a CRD whose rule asks for a field that is not there.
const gizmos = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gizmos.example.com}\nspec: {group: " +
	"example.com, scope: Namespaced, names: {kind: Gizmo, plural: gizmos}, versions: [{name: v1, served: true, storage: true, schema: " +
	"{openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-validations: [{rule: 'self.nope > 1'}]}}}}}]}\n"

// wrongDefault is a CRD that refuses what is to stand where an object says nothing.
var wrongDefault = strings.Replace(gizmos, "x-kubernetes-validations: [{rule: 'self.nope > 1'}]",
	"properties: {a: {type: string, default: 3}}", 1)

func gizmo(name string) string {
	return "---\napiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: " + name + ", namespace: platform}\nspec: {}\n"
}
