package validate

import (
	"strings"
	"testing"
)

// sound are objects with nothing wrong in them, beside those of refusable.
var sound = map[string]string{
	"DaemonSet": `apiVersion: apps/v1
kind: DaemonSet
spec:
  updateStrategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: a
        image: a
        env: [{name: A, value: a}, {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ports: [{name: http, containerPort: 80}, {name: metrics, containerPort: 81}]
        livenessProbe: {periodSeconds: 5, exec: {command: [a]}}
        readinessProbe: {successThreshold: 2, exec: {command: [a]}}
        volumeMounts: [{name: a, mountPath: /a, subPath: a/b}, {name: a, mountPath: /b}]
      volumes: [{name: a, hostPath: {path: /a}}, {name: b}]
`,
	"Slow": `apiVersion: apps/v1
kind: Deployment
spec: {minReadySeconds: 60, progressDeadlineSeconds: 61}
`,
	"Service": `apiVersion: v1
kind: Service
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  loadBalancerSourceRanges: [10.0.0.0/8]
  ports: [{name: a, port: 53, nodePort: 30053}, {name: b, port: 53, protocol: UDP}]
`,
	"Headless":     "apiVersion: v1\nkind: Service\nspec: {clusterIP: None, ports: [{port: 80}]}\n",
	"ExternalName": "apiVersion: v1\nkind: Service\nspec: {type: ExternalName, externalName: a.example.com}\n",
	"Paths": `apiVersion: networking.k8s.io/v1
kind: Ingress
spec:
  rules:
  - http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}
  - http: {paths: [{pathType: ImplementationSpecific, backend: {service: {name: a, port: {name: http}}}}]}
`,
	"Policy": `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
spec:
  egress: [{to: [{podSelector: {}, namespaceSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: 80, endPort: 90}]}]
`,
	"PodDisruptionBudget": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {minAvailable: 1}\n",
	"ClusterRole": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {nonResourceURLs: [/metrics], verbs: [get]}]
`,
	"Role": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n",
	"ClusterRoleBinding": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}
subjects:
- {kind: ServiceAccount, name: a, namespace: b}
- {kind: Group, name: c, apiGroup: rbac.authorization.k8s.io}
- {kind: User, name: d}
`,
	"PersistentVolumeClaim": `apiVersion: v1
kind: PersistentVolumeClaim
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
	"ResourceQuota": `apiVersion: v1
kind: ResourceQuota
spec: {hard: {cpu: 1, requests.memory: 1Gi, count/jobs.batch: 4, requests.nvidia.com/gpu: 1, hugepages-2Mi: 1Gi, services.nodeports: 0}}
`,
	"LimitRange": `apiVersion: v1
kind: LimitRange
spec: {limits: [{type: Container, min: {cpu: 10m}, defaultRequest: {cpu: 50m}, default: {cpu: 100m}, max: {cpu: "2"}}]}
`,
	"Secret":        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\ndata: {tls.crt: a}\nstringData: {tls.key: b}\n",
	"ConfigMap":     "apiVersion: v1\nkind: ConfigMap\ndata: {app.yaml: a, A_B-c: b}\nbinaryData: {logo.png: AA==}\n",
	"PriorityClass": "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nvalue: 1000000000\n",
	"HelmRepository": `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
spec: {type: oci, url: oci://ghcr.io/acme/charts}
`,
	"MachineDeployment": `apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
spec:
  rollout: {strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}
  remediation: {maxInFlight: 20%}
  machineNaming: {template: "{{ .machineSet.name }}-{{.random}}"}
  template: {spec: {bootstrap: {configRef: {name: a}}, taints: [{key: a, effect: NoSchedule, propagation: Always}]}}
`,
	"MachinePool": "apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachinePool\nspec: {template: {spec: {bootstrap: {dataSecretName: a}}}}\n",
	"Cluster":     "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nspec: {topology: {classRef: {name: a}}}\n",
	"MachineDrainRule": `apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDrainRule
spec: {drain: {behavior: Drain, order: 5}}
`,
	"ClusterResourceSet": `apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
spec: {clusterSelector: {matchLabels: {cni: calico}}}
`,
	"KubeadmControlPlane": `apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
spec:
  rollout: {before: {certificatesExpiryDays: 21}}
  machineNaming: {template: "{{ .cluster.name }}-cp-{{ .random }}"}
  kubeadmConfigSpec:
    clusterConfiguration: {certificateValidityPeriodDays: 90, caCertificateValidityPeriodDays: 365, etcd: {external: {endpoints: [a]}}}
    initConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 300}}
    joinConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 300}}
    users: [{name: ada}, {name: grace}]
    format: cloud-config
    bootCommands: [a]
    files: [{path: /a, encoding: gzip+base64, content: a}]
    diskSetup: {partitions: [{device: /dev/sdb, diskLayout: [{percentage: 60}, {percentage: 40}]}]}
`,
}

// What cross the fields of one object, and an API server or a webhook refuses: each of these objects has one thing wrong.
func TestRefusedAcrossFields(t *testing.T) {
	for name, manifest := range sound {
		for field, what := range refusedFields(t, manifest) {
			t.Errorf("%s is refused for its %s, with nothing wrong in it: %s", name, field, what)
		}
	}
	for _, tc := range []struct{ object, old, becomes, field, want string }{
		{
			"DaemonSet", "maxUnavailable: 1", "maxUnavailable: 0",
			"spec.updateStrategy.rollingUpdate.maxUnavailable", "cannot be 0 where maxSurge is 0",
		},
		{"DaemonSet", "maxSurge: 0", "maxSurge: 20%", "spec.updateStrategy.rollingUpdate.maxSurge", "cannot be more than 0"},
		{"DaemonSet", "value: a}", "value: a, valueFrom: {fieldRef: {}}}", podOf("env[0].valueFrom"), "together with value"},
		{"DaemonSet", "name: metrics", "name: http", podOf("ports[1].name"), "there is a port http already"},
		{"DaemonSet", "5, exec: {command: [a]}", "5", podOf("livenessProbe"), "does not say what to ask"},
		{"DaemonSet", "5, exec", "5, tcpSocket: {port: 80}, exec", podOf("livenessProbe.tcpSocket"), "together with exec"},
		{"DaemonSet", "periodSeconds: 5", "successThreshold: 2", podOf("livenessProbe.successThreshold"), "takes 1 alone"},
		{"DaemonSet", "mountPath: /b", "mountPath: /a", podOf("volumeMounts[1].mountPath"), "mounted at /a already"},
		{"DaemonSet", "subPath: a/b", "subPath: a/../../b", podOf("volumeMounts[0].subPath"), "no path inside of the volume"},
		{"DaemonSet", "subPath: a/b", "subPath: /a", podOf("volumeMounts[0].subPath"), "no path inside of the volume"},
		{"DaemonSet", "hostPath", "emptyDir: {}, hostPath", "spec.template.spec.volumes[0].hostPath", "together with emptyDir"},
		{"Slow", "Seconds: 61", "Seconds: 60", "spec.minReadySeconds", "60 is not less than progressDeadlineSeconds"},
		{"Slow", "60, progressDeadlineSeconds: 61", "600", "spec.minReadySeconds", "which is 600"},
		{"Service", "name: b", "name: a", "spec.ports[1].name", "there is a port a already"},
		{"Service", "name: b, ", "", "spec.ports[1]", "needs a name for each"},
		{"Service", "protocol: UDP", "protocol: TCP", "spec.ports[1].port", "there is a port 53/TCP already"},
		{
			"Service", "  type: LoadBalancer\n  externalTrafficPolicy: Local\n", "  type: NodePort\n",
			"spec.loadBalancerSourceRanges", "LoadBalancer has it",
		},
		{"Headless", "clusterIP", "type: LoadBalancer, clusterIP", "spec.clusterIP", "cannot be headless"},
		{"Headless", "port: 80", "port: 80, nodePort: 30080", "spec.ports[0].nodePort", "has no ports on nodes"},
		{"Headless", "clusterIP: None", "externalTrafficPolicy: Local", "spec.externalTrafficPolicy", "reached from outside"},
		{"Headless", "clusterIP: None", "externalIPs: [192.0.2.1], externalTrafficPolicy: Local", "", ""},
		{"Headless", "clusterIP: None", `type: "${TYPE}", externalTrafficPolicy: Local`, "", ""},
		{"ExternalName", ", externalName: a.example.com", "", "spec", "needs an externalName"},
		{"Paths", "path: /a", "path: a", "spec.rules[0].http.paths[0].path", "does not begin with /"},
		{"Paths", "path: /a", "path: /a//b", "spec.rules[0].http.paths[0].path", "double /"},
		{"Paths", "path: /a, ", "", "spec.rules[0].http.paths[0]", "Prefix needs a path"},
		{"Paths", "number: 80", "number: 80, name: a", "spec.rules[0].http.paths[0].backend.service.port.name", "together with number"},
		{"Policy", "{cidr: 10.0.0.0/8}", "{cidr: 10.0.0.0/8}, podSelector: {}", "spec.egress[0].to[1].podSelector", "together with ipBlock"},
		{"Policy", "endPort: 90", "endPort: 70", "spec.egress[0].ports[0].endPort", "70 is less than port, which is 80"},
		{"Policy", "port: 80, ", "port: http, ", "spec.egress[0].ports[0].endPort", "needs a port with a number"},
		{"PodDisruptionBudget", "minAvailable: 1", "minAvailable: 1, maxUnavailable: 1", "spec.maxUnavailable", "together with minAvailable"},
		{"ClusterRole", `apiGroups: [""], `, "", "rules[0]", "needs apiGroups"},
		{"ClusterRole", "resources: [pods], ", "", "rules[0]", "needs resources"},
		{"ClusterRole", "[/metrics]", "[/metrics], resources: [pods]", "rules[1].nonResourceURLs", "not both"},
		{"Role", `apiGroups: [""], resources: [pods]`, "nonResourceURLs: [/a]", "rules[0].nonResourceURLs", "objects alone"},
		{"ClusterRoleBinding", "kind: ClusterRole,", "kind: Role,", "roleRef.kind", `"Role" is not possible here`},
		{"ClusterRoleBinding", "apiGroup: rbac.authorization.k8s.io, kind", "apiGroup: v1, kind", "roleRef.apiGroup", "is not possible here"},
		{"ClusterRoleBinding", ", namespace: b", "", "subjects[0]", "the namespace of the ServiceAccount is missing"},
		{"ClusterRoleBinding", "namespace: b", "namespace: b, apiGroup: rbac.authorization.k8s.io", "subjects[0].apiGroup", "in no group"},
		{"ClusterRoleBinding", "name: d", "name: d, apiGroup: v1", "subjects[2].apiGroup", `"v1" is not possible here`},
		{"PersistentVolumeClaim", "accessModes: [ReadWriteOnce], ", "", "spec", "needs accessModes"},
		{"PersistentVolumeClaim", "storage: 1Gi", "memory: 1Gi", "spec", "needs a size"},
		{"ResourceQuota", "requests.memory", "request.memory", "spec.hard[request.memory]", "no quota counts that"},
		{
			"LimitRange", "defaultRequest: {cpu: 50m}", "defaultRequest: {cpu: 1}",
			"spec.limits[0].defaultRequest.cpu", "more than default, which is 100m",
		},
		{"LimitRange", "min: {cpu: 10m}", "min: {cpu: 3}", "spec.limits[0].min.cpu", "more than max, which is 2"},
		{"Secret", "tls.key", "tls.pem", "type", "needs the key tls.key"},
		{"Secret", "tls.key: b", `tls.key: a, "a/b": c`, "stringData[a/b]", "is no key"},
		{"ConfigMap", "A_B-c", "A B", "data[A B]", "is no key"},
		{"ConfigMap", "logo.png", "app.yaml", "binaryData[app.yaml]", "the key is in data, too"},
		{"PriorityClass", "1000000000", "1000000001", "value", "more than 1000000000"},
		{"HelmRepository", "type: oci, ", "", "spec.url", "needs a type"},
		{"HelmRepository", "type: oci", "type: default", "spec.type", "needs another type"},
		{"HelmRepository", "oci://ghcr", "https://ghcr", "spec.url", "is no address of a registry"},
		{
			"MachineDeployment", "maxSurge: 1", "maxSurge: 0",
			"spec.rollout.strategy.rollingUpdate.maxUnavailable", "cannot be 0 where maxSurge is 0",
		},
		{"MachineDeployment", "maxInFlight: 20%", "maxInFlight: some", "spec.remediation.maxInFlight", "neither a number nor a percentage"},
		{"MachineDeployment", "{{.random}}", "x", "spec.machineNaming.template", "all machines would have one name"},
		{"MachineDeployment", "{configRef: {name: a}}", "{}", "spec.template.spec.bootstrap", "how these machines become nodes"},
		{"MachinePool", "bootstrap:", "taints: [{key: a}], bootstrap:", "spec.template.spec.taints", "a MachinePool cannot have it"},
		{"Cluster", "topology: {classRef: {name: a}}", "paused: false", "", ""}, // only newer releases of Cluster API refuse it
		{"MachineDrainRule", "behavior: Drain", "behavior: Skip", "spec.drain.order", "with behavior Skip there is no order"},
		{"ClusterResourceSet", "matchLabels: {cni: calico}", "", "spec.clusterSelector", "it selects nothing"},
		{"KubeadmControlPlane", "{{ .random }}", "1", "spec.machineNaming.template", "all machines would have one name"},
		{
			"KubeadmControlPlane", "PeriodDays: 365", "PeriodDays: 80",
			"spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays", "90 is more than that of the certificate authority",
		},
		{"KubeadmControlPlane", "ExpiryDays: 21", "ExpiryDays: 90", "spec.rollout.before.certificatesExpiryDays", "90 is not less than"},
		{
			"KubeadmControlPlane", "external: {endpoints: [a]}", "external: {endpoints: [a]}, local: {dataDir: /a}",
			"spec.kubeadmConfigSpec.clusterConfiguration.etcd.local", "together with external",
		},
		{
			"KubeadmControlPlane", "Seconds: 300}}\n    users", "Seconds: 200}}\n    users",
			"spec.kubeadmConfigSpec.joinConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds", "differs from that of initConfiguration",
		},
		{"KubeadmControlPlane", "name: grace", "name: ada", "spec.kubeadmConfigSpec.users[1].name", "there is a user ada already"},
		{
			"KubeadmControlPlane", "format: cloud-config\n    bootCommands: [a]", "format: ignition",
			"spec.kubeadmConfigSpec.files[0].encoding", "cannot do that",
		},
		{
			"KubeadmControlPlane", "format: cloud-config", "ignition: {containerLinuxConfig: {strict: true}}",
			"spec.kubeadmConfigSpec.ignition", "needs format",
		},
		{
			"KubeadmControlPlane", "percentage: 40", "percentage: 50",
			"spec.kubeadmConfigSpec.diskSetup.partitions[0].diskLayout", "take 110 percent of the disk",
		},
	} {
		manifest := strings.Replace(sound[tc.object], tc.old, tc.becomes, 1)
		if manifest == sound[tc.object] {
			t.Errorf("%s has no %q", tc.object, tc.old)
		}
		found := refusedFields(t, manifest)
		if tc.field == "" {
			if len(found) > 0 {
				t.Errorf("%s with %q is refused: %v", tc.object, tc.becomes, found)
			}
			continue
		}
		if len(found) != 1 || !strings.Contains(found[tc.field], tc.want) {
			t.Errorf("%s with %q: got %v, want %s: %s", tc.object, tc.becomes, found, tc.field, tc.want)
		}
	}
}

// podOf is a field of the first container in the template of a workload.
func podOf(field string) string { return "spec.template.spec.containers[0]." + field }
