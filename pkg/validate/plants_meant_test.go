package validate

import "strings"

// plantsMeant are mistakes in what several fields or objects mean together. Each stands in the line with at.
func plantsMeant() (out []plant) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: meant, namespace: platform}\nspec:\n" +
		"  selector: {matchLabels: {app: meant}}\n  template:\n    metadata: {labels: {app: meant}}\n    spec:\n      containers:\n" +
		"      - name: a\n        image: a:v1\n"
	const scaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: meant, namespace: platform}\nspec:\n" +
		"  maxReplicas: 3\n  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: Deployment\n    name: meant\n  metrics:\n"
	const budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: meant, namespace: platform}\nspec:\n" +
		"  selector: {matchLabels: {app: web}}\n"
	const kustomization = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: meant, namespace: platform}\n" +
		"spec:\n  interval: 10m\n  prune: true\n  path: ./features/later\n" +
		"  sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}\n"
	for _, p := range []struct{ name, rule, object, at string }{
		{"a budget of no evictions", RuleValue, budget + "  maxUnavailable: 0\n", "maxUnavailable: 0"},
		{"a budget of all pods", RuleValue, budget + "  minAvailable: 100%\n", "minAvailable: 100%"},
		{
			"a variable that is not set", RuleValue,
			deployment + "        env: [{name: LEVEL, value: info}]\n        args:\n        - --level=$(LOGLEVEL)\n", "- --level",
		},
		{
			"a variable that is set too late", RuleValue,
			deployment + "        env:\n        - name: URL\n          value: https://$(HOST)\n        - {name: HOST, value: a}\n", "value: https",
		},
		{
			"an autoscaler that cannot count", RuleValue, deployment + "        resources: {requests: {memory: 64Mi}}\n" + scaler +
				"  - type: Resource\n    resource:\n      name: cpu\n      target: {type: Utilization, averageUtilization: 80}\n", "      name: cpu",
		},
		{
			"an autoscaler of another container", RuleMissingObject, deployment + "        resources: {requests: {cpu: 64m}}\n" + scaler +
				"  - type: ContainerResource\n    containerResource:\n      container: b\n      name: cpu\n" +
				"      target: {type: Utilization, averageUtilization: 80}\n", "container: b",
		},
		{
			"an autoscaler of a kind that no group has", RuleAPIVersion,
			deployment + strings.Replace(scaler[:strings.Index(scaler, "  metrics:")], "apiVersion: apps/v1", "apiVersion: v1", 1),
			"    apiVersion: v1",
		},
		{
			"a health check of a kind that no group has", RuleAPIVersion, kustomization +
				"  healthChecks:\n  - apiVersion: apps/v1\n    kind: Deploymnt\n    name: one\n    namespace: one\n",
			"Deploymnt",
		},
		{
			"a health check that cannot be read", RuleValue, kustomization +
				"  healthCheckExprs:\n  - apiVersion: example.com/v1\n    kind: Widget\n    current: status.ready = true\n", "current:",
		},
	} {
		out = append(out, plant{
			name: p.name, rule: p.rule, file: platform + "meant.yaml", becomes: p.object, at: p.at,
			also: []string{RuleMissingNS}, // of the folder that the Kustomizations apply
		})
	}
	for _, p := range []struct{ name, rule, old, becomes, at string }{
		{"a default that its schema refuses", RuleRefused, "default: 4096", "default: small", "default: small"},
		{"a variable of no class in a template", RuleRefused, "'{{ .size }}'", "'{{ .sise }}'", "template: '{{"},
		{"a variable of no class in a condition", RuleRefused, "'{{ if .size }}", "'{{ if .seize }}", "enabledIf:"},
		{
			"a patch below what is not there", RuleRefused, "path: /spec/template/spec/kubeadmConfigSpec/users",
			"path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer", "path: /spec",
		},
		{
			"a patch of a field that is none", RuleUnknownField, "path: /spec/template/spec/kubeadmConfigSpec/users",
			"path: /spec/template/spec/kubeadmConfigSpec/user", "path: /spec",
		},
		{
			"a patch of another kind", RuleRefused, "        kind: KubeadmControlPlaneTemplate\n", "        kind: KubeadmControlPlane\n",
			"        kind: KubeadmControlPlane\n",
		},
	} {
		whole := meantClass()
		out = append(out, plant{
			name: p.name, rule: p.rule, file: platform + "meant.yaml", becomes: strings.Replace(whole, p.old, p.becomes, 1), at: p.at,
			also: []string{RuleMissingCRDs},
		})
	}
	return append(out, plantsOfReleases()...)
}

// meantClass is a ClusterClass with a patch, and its templates.
func meantClass() string {
	return `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: meant, namespace: platform}
spec:
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: meant}
  infrastructure:
    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevClusterTemplate, name: meant}
  variables:
  - name: size
    required: false
    schema:
      openAPIV3Schema:
        type: integer
        default: 4096
  patches:
  - name: users
    enabledIf: '{{ if .size }}true{{ end }}'
    definitions:
    - selector:
        apiVersion: controlplane.cluster.x-k8s.io/v1beta2
        kind: KubeadmControlPlaneTemplate
        matchResources: {controlPlane: true}
      jsonPatches:
      - op: add
        path: /spec/template/spec/kubeadmConfigSpec/users
        valueFrom:
          template: '{{ .size }}'
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlaneTemplate
metadata: {name: meant, namespace: platform}
spec: {template: {spec: {kubeadmConfigSpec: {format: cloud-config}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevClusterTemplate
metadata: {name: meant, namespace: platform}
spec: {template: {spec: {backend: {inMemory: {}}}}}
`
}

// plantsOfReleases are mistakes in HelmReleases of a chart from elsewhere, and in clusters of vSphere.
func plantsOfReleases() (out []plant) {
	const quiet = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: meant, namespace: platform}\ndata:\n  values.yaml: |\n    a: b\n" +
		"  level: info\n"
	release := func(name string) string {
		return "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: platform}\nspec:\n" +
			"  interval: 10m\n  releaseName: meant\n  chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: meant}}}\n" +
			"  valuesFrom:\n  - kind: ConfigMap\n    name: meant\n"
	}
	const repository = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: meant, namespace: platform}\n" +
		"spec: {interval: 1h, url: 'https://charts.example.com'}\n"
	second := strings.Replace(release("second"), "releaseName: meant", "releaseName:  meant", 1)
	for _, p := range []struct{ name, rule, objects, at string }{
		{"two releases of one name", RuleConflict, release("first") + second + quiet, "releaseName:  meant"},
		{"values that are no YAML", RuleValue, release("first") + strings.Replace(quiet, "a: b", "a: [b", 1), "    a: [b"},
		{"values that are a list", RuleValue, release("first") + strings.Replace(quiet, "a: b", "- b", 1), "  values.yaml: |"},
		{"one value in place of a mapping", RuleValue, release("first") + "    valuesKey: level\n" + quiet, "  level: info"},
		{
			"a mapping in place of one value", RuleValue,
			release("first") + "    targetPath: a.b\n" + strings.Replace(quiet, "a: b", "a: b\n    c: d", 1), "targetPath: a.b",
		},
	} {
		out = append(out, plant{
			name: p.name, rule: p.rule, file: platform + "meant.yaml", becomes: repository + p.objects, at: p.at,
			also: []string{RuleForeign},
		})
	}
	for _, p := range []struct{ name, old, becomes, at string }{
		{"an address of two clusters", "host: 192.0.2.8", "host: 192.0.2.7", "host: 192.0.2.7, port: 6443 }"},
		{"another address of kube-vip", "value: 192.0.2.8", "value: 192.0.2.9", "value: 192.0.2.9"},
	} {
		whole := vspherePair()
		out = append(out, plant{
			name: p.name, rule: RuleRefused, file: platform + "meant.yaml", becomes: strings.Replace(whole, p.old, p.becomes, 1), at: p.at,
			also: []string{RuleUnknownKind, RuleMissingID, RulePrune, RuleRefused},
		})
	}
	return out
}

// vspherePair are two clusters of vSphere. The second one has a control plane with kube-vip.
func vspherePair() string {
	return `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereCluster
metadata: {name: first, namespace: platform}
spec: {server: vcenter.example.com, controlPlaneEndpoint: {host: 192.0.2.7, port: 6443}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereCluster
metadata: {name: raw, namespace: platform}
spec:
  server: vcenter.example.com
  controlPlaneEndpoint: { host: 192.0.2.8, port: 6443 }
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: raw, namespace: platform, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: VSphereCluster, name: raw}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: raw}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereMachineTemplate
metadata: {name: raw, namespace: platform}
spec: {template: {spec: {template: ubuntu, network: {devices: [{dhcp4: true, networkName: a}]}}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: raw, namespace: platform}
spec:
  replicas: 3
  version: v1.36.1
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: VSphereMachineTemplate, name: raw}
  kubeadmConfigSpec:
    files:
    - path: /etc/kubernetes/manifests/kube-vip.yaml
      content: |
        apiVersion: v1
        kind: Pod
        metadata: {name: kube-vip, namespace: kube-system}
        spec:
          containers:
          - name: kube-vip
            image: ghcr.io/kube-vip/kube-vip:v0.8.0
            env:
            - name: address
              value: 192.0.2.8
            - {name: port, value: "6443"}
`
}
