package validate

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// slip is a mistake in a manifest of its own. NAME in it is a name that no other manifest has. The finding is to be in the line with at.
type slip struct{ what, rule, manifest, at string }

// inPod is a Deployment whose only container, or whose pod, has something besides.
func inPod(ofPod, ofContainer string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME, namespace: shop}\nspec:\n" +
		"  selector: {matchLabels: {app: NAME}}\n" +
		"  template:\n    metadata: {labels: {app: NAME}}\n    spec:\n" + ofPod + "      containers:\n      - name: web\n" +
		"        image: web:v1\n" +
		ofContainer
}

// ofShop is an object of the namespace shop.
func ofShop(apiVersion, kind, rest string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: NAME, namespace: shop}\n" + rest
}

// helmRelease is a HelmRelease, in a namespace of its own: a chart that is not rendered may bring anything.
func helmRelease(rest string) string {
	return strings.Replace(ofShop("helm.toolkit.fluxcd.io/v2", "HelmRelease", rest), "namespace: shop", "namespace: charts", 1)
}

// slips are mistakes that people make every day in objects of Kubernetes and of Flux.
func slips() []slip {
	const (
		rbac, flux, image = "rbac.authorization.k8s.io/v1", "kustomize.toolkit.fluxcd.io/v1", "image.toolkit.fluxcd.io/v1"
		ingress, notify   = "networking.k8s.io/v1", "notification.toolkit.fluxcd.io/"
		own               = "spec:\n  interval: 10m\n  prune: true\n  path: ./features/NAME\n  suspend: true\n" +
			"  sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}\n"
		release = "spec:\n  interval: 10m\n  chartRef: {kind: HelmChart, name: staging-in-memory, namespace: flux-system}\n  suspend: true\n" +
			"  values: {kubernetesVersion: v1.36.3}\n"
		cpu = "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: known}\n"
	)
	return []slip{
		{
			"a toleration that compares nothing", RuleValue,
			inPod("      tolerations:\n      - key: a\n        operator: Exists\n        value: b\n", ""), "value: b",
		},
		{"a toleration of nothing", RuleValue, inPod("      tolerations:\n      - effect: NoSchedule\n", ""), "- effect"},
		{"root that must not be", RuleValue, inPod("      securityContext: {runAsNonRoot: true}\n",
			"        securityContext:\n          runAsUser: 0\n"), "runAsUser"},
		{
			"privileges and none", RuleValue,
			inPod("", "        securityContext:\n          privileged: true\n          allowPrivilegeEscalation: false\n"),
			"allowPriv",
		},
		{
			"a seccomp profile of no type", RuleValue,
			inPod("      securityContext:\n        seccompProfile:\n          type: RuntimeDefaul\n", ""), "type: R",
		},
		{"a resource of no container", RuleValue, inPod("", "        resources:\n          requests:\n            mem: 1Gi\n"), "mem:"},
		{"thousandths of a byte", RuleValue, inPod("", "        resources:\n          limits:\n            memory: 512m\n"), "512m"},
		{
			"more asked for than allowed", RuleValue,
			inPod("", "        resources:\n          limits: {memory: 1Gi}\n          requests:\n            memory: 2Gi\n"),
			"2Gi",
		},
		{
			"a field of no pod", RuleValue,
			inPod("", "        env:\n        - name: A\n          valueFrom:\n            fieldRef: {fieldPath: metadata.nam}\n"),
			"fieldPath",
		},
		{
			"a resource of no variable", RuleValue,
			inPod("", "        env:\n        - name: A\n          valueFrom:\n            resourceFieldRef: {resource: limit.cpu}\n"),
			"limit.cpu",
		},
		{
			"a key that a ConfigMap lacks", RuleMissingObject,
			inPod("", "        env:\n        - name: A\n          valueFrom:\n            configMapKeyRef: "+
				"{name: known, key: domian}\n"), "domian",
		},
		{
			"a key that a volume wants", RuleMissingObject,
			inPod("      volumes:\n      - name: a\n        configMap:\n          name: known\n          items:\n"+
				"          - key: domian\n            path: a\n", ""), "domian",
		},
		{
			"a weight", RuleValue,
			inPod("      affinity:\n        podAntiAffinity:\n          preferredDuringSchedulingIgnoredDuringExecution:\n"+
				"          - weight: 200\n            podAffinityTerm: {topologyKey: a, labelSelector: {matchLabels: {app: NAME}}}\n"+
				"", ""), "weight",
		},
		{
			"far from nothing", RuleIdleSelector,
			inPod("      affinity:\n        podAntiAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n"+
				"          - topologyKey: a\n            labelSelector: {matchLabels: {app: nothing}}\n", ""), "nothing",
		},
		{"spread with nothing", RuleIdleSelector, inPod("      topologySpreadConstraints:\n      - maxSkew: 1\n        topologyKey: a\n"+
			"        whenUnsatisfiable: DoNotSchedule\n        labelSelector: {matchLabels: {app: nothing}}\n", ""), "nothing"},
		{"a class of priority that is nearly right", RuleMissingObject, inPod("      priorityClassName: hihg\n", ""), "hihg"},
		{"pods that are replaced in two ways", RuleValue, strings.Replace(inPod("", ""), "spec:\n",
			"spec:\n  strategy:\n    type: Recreate\n    rollingUpdate: {maxSurge: 1}\n", 1), "rollingUpdate"},
		{"a share that is none", RuleValue, ofShop("policy/v1", "PodDisruptionBudget",
			"spec:\n  minAvailable: 50 %\n  selector: {matchLabels: {app: known}}\n"), "50 %"},
		{"a target of no type", RuleValue, ofShop("autoscaling/v2", "HorizontalPodAutoscaler", "spec:\n  maxReplicas: 3\n"+cpu+
			"  metrics:\n  - type: Resource\n    resource:\n      name: cpu\n      target: {type: Utilisation, averageUtilization: 80}\n"+
			""), "Utilisation"},
		{"egress that is not limited", RuleValue, ofShop(ingress, "NetworkPolicy",
			"spec:\n  podSelector: {}\n  policyTypes: [Ingress]\n  egress:\n  - {}\n"), "egress"},
		{"an IngressClass that is nearly right", RuleMissingObject, ofShop(ingress, "Ingress",
			"spec:\n  ingressClassName: ngnix\n  defaultBackend: {service: {name: known, port: {number: 80}}}\n"), "ngnix"},
		{"a StorageClass that is nearly right", RuleMissingObject, ofShop("v1", "PersistentVolumeClaim",
			"spec:\n  storageClassName: fsat\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n"), "fsat"},
		{
			"a group with its version", RuleValue,
			ofShop(rbac, "Role", "rules:\n- apiGroups: [apps/v1]\n  resources: [deployments]\n  verbs: [get]\n"), "apps/v1",
		},
		{
			"a kind for a resource", RuleValue,
			ofShop(rbac, "Role", "rules:\n- apiGroups: [apps]\n  resources: [Deployment]\n  verbs: [get]\n"), "[Deployment]",
		},
		{
			"a resource of another group", RuleValue,
			ofShop(rbac, "Role", "rules:\n- apiGroups: [\"\"]\n  resources: [deployments]\n  verbs: [get]\n"), "- apiGroups",
		},
		{"a verb", RuleValue, ofShop(rbac, "Role", "rules:\n- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [gte]\n"), "gte"},
		{"a role of every cluster that is nearly right", RuleMissingObject, ofShop(rbac, "RoleBinding",
			"subjects: [{kind: Group, name: a, apiGroup: rbac.authorization.k8s.io}]\n"+
				"roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: veiw\n"), "veiw"},
		{"a role of the namespace as one of the cluster", RuleMissingObject, ofShop(rbac, "RoleBinding",
			"subjects: [{kind: Group, name: a, apiGroup: rbac.authorization.k8s.io}]\n"+
				"roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: known\n"), "  name: known"},
		{"a level of Pod Security", RuleValue, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: NAME\n  labels:\n" +
			"    pod-security.kubernetes.io/enforce: restrict\n", "restrict"},
		{"a version of Pod Security", RuleValue, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: NAME\n  labels:\n" +
			"    pod-security.kubernetes.io/enforce-version: \"1.36\"\n", "1.36"},
		{
			"a webhook without its Service", RuleMissingObject,
			"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
				"metadata: {name: NAME}\nwebhooks:\n- name: a.b.c\n  sideEffects: None\n  admissionReviewVersions: [v1]\n  clientConfig:\n" +
				"    service:\n" +
				"      namespace: shop\n      name: nothing\n", "name: nothing",
		},
		{"an ssh address without a key", RuleValue, ofShop("source.toolkit.fluxcd.io/v1", "GitRepository",
			"spec:\n  interval: 1m\n  url: ssh://git@example.com/a.git\n"), "url:"},
		{"a release with a long name", RuleValue, helmRelease(release + "  releaseName: " + strings.Repeat("a", 54) + "\n"), "releaseName"},
		{
			"values that a ConfigMap lacks", RuleMissingConfig,
			helmRelease(release + "  valuesFrom:\n  - kind: ConfigMap\n    name: known\n    valuesKey: domian\n"), "valuesKey",
		},
		{
			"values under no key", RuleMissingConfig,
			helmRelease(release + "  valuesFrom:\n  - kind: ConfigMap\n    name: known\n"), "name: known",
		},
		{"a health check of nothing", RuleMissingObject, ofShop(flux, "Kustomization",
			own+"  healthChecks:\n  - {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: nothing}\n"), "nothing"},
		{"a health check of a release that is nearly right", RuleMissingObject, ofShop(flux, "Kustomization",
			own+"  healthChecks:\n  - {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, namespace: one, name: oen}\n"), "oen"},
		{"nobody who applies it", RuleMissingObject, ofShop(flux, "Kustomization", own+"  serviceAccountName: nobody\n"), "nobody"},
		{"an alert to nobody", RuleMissingObject, ofShop(notify+"v1beta3", "Alert",
			"spec:\n  providerRef:\n    name: nobody\n  eventSources: [{kind: Kustomization, name: '*'}]\n"), "nobody"},
		{"an alert about nothing", RuleMissingObject, ofShop(notify+"v1beta3", "Alert",
			"spec:\n  providerRef: {name: known}\n  eventSources:\n  - kind: GitRepository\n    name: nothing\n"), "nothing"},
		{"a receiver that wakes nothing", RuleMissingObject, ofShop(notify+"v1", "Receiver",
			"spec:\n  type: generic\n  resources:\n  - kind: GitRepository\n    name: nothing\n"), "nothing"},
		{"a policy for no image", RuleMissingObject, ofShop(image, "ImagePolicy",
			"spec:\n  imageRepositoryRef:\n    name: nothing\n  policy: {semver: {range: 1.x}}\n"), "nothing"},
		{"a filter of tags", RuleValue, ofShop(image, "ImagePolicy", "spec:\n  imageRepositoryRef: {name: known}\n"+
			"  filterTags: {pattern: '^main-[a-f'}\n  policy: {numerical: {order: asc}}\n"), "filterTags"},
		{
			"an image with a scheme", RuleValue,
			ofShop(image, "ImageRepository", "spec:\n  interval: 1m\n  image: https://example.com/a\n"), "image:",
		},
	}
}

// around is what the manifests refer to.
const around = `apiVersion: v1
kind: Namespace
metadata: {name: charts, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: known, namespace: charts}
data: {domain: example.com}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: known, namespace: shop}
data: {domain: example.com}
---
apiVersion: v1
kind: Service
metadata: {name: known, namespace: shop}
spec: {selector: {app: known}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: known, namespace: shop}
spec:
  selector: {matchLabels: {app: known}}
  template:
    metadata: {labels: {app: known}}
    spec:
      priorityClassName: high
      tolerations: [{operator: Exists}, {key: a, value: b}]
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: web:v1
        resources: {requests: {cpu: 100m, memory: 64Mi, example.com/device: 1}, limits: {memory: 64Mi, hugepages-2Mi: 4Mi}}
        env:
        - {name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
        - {name: B, valueFrom: {resourceFieldRef: {resource: requests.cpu}}}
        - {name: C, valueFrom: {configMapKeyRef: {name: known, key: domain}}}
        - {name: D, valueFrom: {configMapKeyRef: {name: known, key: other, optional: true}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/fast
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: example.com/nginx}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: known, namespace: shop}
rules:
- {apiGroups: ["", apps], resources: [pods, pods/log, deployments], verbs: [get, deletecollection]}
- {apiGroups: [example.com], resources: [deployments], verbs: [gett]}
- {apiGroups: ["*"], resources: ["*"], verbs: [get]}
- {apiGroups: [metrics.k8s.io], resources: [pods, nodes], verbs: [get, list]}
- {apiGroups: [custom.metrics.k8s.io], resources: [pods/requests], verbs: [gett]}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: known, namespace: shop}
spec: {type: generic, address: https://example.com/hook}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: known, namespace: shop}
spec: {interval: 1m, image: example.com/a}
`

// Each slip is found at its line, and nothing else is. All are in one fleet, which takes the time of one.
func TestEverydaySlips(t *testing.T) {
	files := maps.Clone(fleet(t))
	files[mgmt+"shop/around.yaml"] = around
	files["fleet.yaml"] += withImages
	all := slips()
	byFile := map[string]int{}
	for i, s := range all {
		name := fmt.Sprintf("%sshop/slip-%c%c.yaml", mgmt, 'a'+i/26, 'a'+i%26)
		byFile[name] = i
		called := fmt.Sprintf("slip%c%c", 'a'+i/26, 'a'+i%26)
		files[name] = strings.ReplaceAll(s.manifest, "NAME", called)
		if strings.Contains(s.manifest, "./features/NAME") {
			files["features/"+called+"/settings.yaml"] = strings.ReplaceAll(ofShop("v1", "ConfigMap", "data: {a: b}\n"), "NAME", called)
		}
	}
	found := map[int]bool{}
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		i, ok := byFile[f.File]
		if ok && f.Rule == all[i].rule && f.Line > 0 && strings.Contains(strings.Split(files[f.File], "\n")[f.Line-1], all[i].at) {
			found[i] = true
			continue
		}
		if strings.HasSuffix(f.Summary, ": this is rendered without it") {
			continue // what the render of a HelmRelease lacks, besides the error that is planted
		}
		what := ""
		if ok {
			what = all[i].what
		}
		t.Errorf("%s: not planted: %s [%s] (%s)", what, f, f.Rule, f.Hint)
	}
	for i, s := range all {
		if !found[i] {
			t.Errorf("%s: not found: %s", s.what, s.rule)
		}
	}
}
