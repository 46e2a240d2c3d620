package validate

import "strings"

// plantsInObjects are the other errors.
func plantsInObjects() []plant {
	return []plant{
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
				files["features/source/source.yaml"] = strings.NewReplacer("name: release", "name: flux-system", "tag: v1.0.0", "branch: main",
					"kind: GitRepository", "kind: GitRepository # fleetctl:ignore missing-controller this is about the branch").Replace(
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
			files[mgmt+"flux-system/gotk-sync.yaml"] += "  patches:\n  - target: {kind: Secret, name: s}\n" +
				"    patch: |\n      - {op: add, path: /stringData, value: {a: hunter2}}\n"
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
			name: "Secret that nothing decrypts", rule: RuleDecryption, file: mgmt + "flux-system/gotk-sync.yaml",
			old: "  decryption:\n    provider: sops\n", becomes: "", at: "sops:", place: settings,
		},
		{
			name: "Secret that a workload cluster cannot decrypt", rule: RuleDecryption, file: "features/web/namespaced/kustomization.yaml",
			old: "- deployment.yaml\n", becomes: "- deployment.yaml\n- token.sops.yaml\n", at: "sops:",
			place: "features/web/namespaced/token.sops.yaml", more: func(files map[string]string) {
				files["features/web/namespaced/token.sops.yaml"] = sopsSecret("token", "default", "token")
			},
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
			name: "image that nothing has", rule: RulePatch, file: "features/web/namespaced/kustomization.yaml",
			old: "- deployment.yaml\n", becomes: "- deployment.yaml\nimages:\n- {name: wbe, newTag: v2}\n", at: "name: wbe",
		},
		{
			name: "image of a Flux Kustomization that nothing has", rule: RulePatch, file: mgmt + "flux-system/gotk-sync.yaml",
			becomes: "  images:\n  - {name: nowhere, newTag: v2}\n", at: "apiVersion: kustomize",
		},
		{
			name: "replacement that finds nothing", rule: RulePatch, file: "features/web/namespaced/kustomization.yaml",
			old: "- deployment.yaml\n", becomes: "- deployment.yaml\nreplacements:\n- source: {kind: Deployment, name: web}\n" +
				"  targets:\n  - select: {kind: Deployment, name: wbe}\n    fieldPaths: [spec.template.spec.containers.0.name]\n", at: "name: wbe",
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
		{
			name: "autoscaler of something that is not there", rule: RuleMissingObject, file: "features/web/namespaced/deployment.yaml",
			becomes: "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: platform}\n" +
				"spec:\n  maxReplicas: 3\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: wab}\n", at: "wab",
		},
		{
			name: "Service of nothing", rule: RuleIdleSelector, file: "features/web/namespaced/deployment.yaml",
			becomes: "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: platform}\n" +
				"spec:\n  ports: [{port: 80}]\n  selector: {app: wab}\n", at: "selector: {app: wab}",
		},
	}
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
