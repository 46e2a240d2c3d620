package validate

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// webPod is a pod with nothing wrong in it.
const webPod = `
      containers:
      - name: web
        image: nginx:1.27
        ports: [{name: http, containerPort: 80}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        livenessProbe: {httpGet: {path: /, port: http}}
        readinessProbe: {tcpSocket: {port: 80}}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
`

// refusable are objects with nothing wrong in them.
var refusable = map[string]string{
	"Deployment": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:` + webPod,
	"StatefulSet": `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      restartPolicy: Always
      containers: [{name: a, image: a, volumeMounts: [{name: claimed, mountPath: /a}]}]
  volumeClaimTemplates: [{metadata: {name: claimed}}]
`,
	"CronJob": `apiVersion: batch/v1
kind: CronJob
metadata: {name: tidy}
spec:
  schedule: "*/5 0-6,22 1 JAN-mar mon"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: a, image: a}]
`,
	"Ingress": `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
spec: {rules: [{host: '*.example.com'}, {host: a.b}]}
`,
	"NetworkPolicy": `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: a}
spec: {ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}
`,
	"HorizontalPodAutoscaler": `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {minReplicas: 1, maxReplicas: 1}
`,
	"MachineDeployment": `apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata:
  name: md
  annotations:
    cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: "1"
    cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: "5"
spec:
  rollout: {strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}}
  clusterName: a
  selector: {matchLabels: {pool: md, cluster.x-k8s.io/cluster-name: a}}
  template: {metadata: {labels: {pool: md}}}
`,
	"Cluster": `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: a}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.8.0.0/13]}, services: {cidrBlocks: [10.96.0.0/12, "fd00::/108"]},
    serviceDomain: cluster.local}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: a}
`,
	"ClusterOfEKS": `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: a}
spec:
  clusterNetwork: {services: {cidrBlocks: [10.96.0.0/12]}}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: AWSManagedControlPlane, name: a}
`,
	"MachineHealthCheck": `apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: a}
spec:
  selector: {matchLabels: {pool: md}}
  checks: {nodeStartupTimeoutSeconds: 600, unhealthyNodeConditions: [{type: Ready, status: Unknown}]}
  remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 40%}}
`,
	"KubeadmControlPlane": `apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: a}
spec:
  replicas: 3
  rollout: {strategy: {rollingUpdate: {maxSurge: 1}}}
  kubeadmConfigSpec:
    clusterConfiguration: {etcd: {local: {}}}
    joinConfiguration: {nodeRegistration: {taints: [{key: a, effect: NoSchedule}]}}
    files: [{path: /etc/a, permissions: "0640", content: a}, {path: /etc/b, permissions: 0o600, contentFrom: {secret: {name: a}}}]
`,
	"KubeadmConfigTemplate": `apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: a}
spec: {template: {spec: {initConfiguration: {nodeRegistration: {taints: [{key: a, effect: NoExecute}]}}, users: [{name: a, passwd: b}]}}}
`,
}

// What the API server and Cluster API's webhooks refuse, and no schema does: each of these objects has one thing wrong.
func TestRefusedByKubernetes(t *testing.T) {
	for kind, manifest := range refusable {
		for field := range refusedFields(t, manifest) {
			t.Errorf("%s is refused for its %s, with nothing wrong in it", kind, field)
		}
	}
	for _, tc := range []struct{ kind, old, becomes, field, want string }{
		{"Deployment", "{app: web}}\n", "{app: wep}}\n", "spec.selector.matchLabels", "does not have the label app: wep"},
		{"Deployment", "maxSurge: 1", "maxSurge: 0", "spec.strategy.rollingUpdate.maxUnavailable", "cannot be 0 where maxSurge is 0"},
		{"Deployment", "image: nginx:1.27", "image: 'nginx: 1.27'", "spec.template.spec.containers[0].image", "it has a space"},
		{"Deployment", "port: http}", "port: htt}", "spec.template.spec.containers[0].livenessProbe.httpGet.port", `no port called "htt"`},
		{
			"Deployment", "memory: 64Mi", "memory: 1Gi",
			"spec.template.spec.containers[0].resources.requests.memory", "more than the limit, which is 128Mi",
		},
		{
			"Deployment", "{name: data, mountPath", "{name: date, mountPath",
			"spec.template.spec.containers[0].volumeMounts[0].name", "no volume date",
		},
		{"Deployment", "volumes: [", "volumes: [{name: data}, ", "spec.template.spec.volumes[1].name", "there is a volume data already"},
		{
			"Deployment", "      containers:\n", "      initContainers: [{name: web, image: a}]\n      containers:\n",
			"spec.template.spec.containers[0].name", "there is a container web already",
		},
		{
			"Deployment", "    spec:\n", "    spec:\n      restartPolicy: OnFailure\n",
			"spec.template.spec.restartPolicy", `"OnFailure" is not possible here`,
		},
		{
			"StatefulSet", "name: claimed, m", "name: claim, m",
			"spec.template.spec.containers[0].volumeMounts[0].name", "there is no volume claim",
		},
		{"CronJob", "*/5 0-6,22 1 JAN-mar mon", "0 3 * *", "spec.schedule", "expected exactly 5 fields, found 4"},
		{"CronJob", "0-6,22", "24", "spec.schedule", `end of range (24) above maximum (23)`},
		{"CronJob", "*/5", "*/0", "spec.schedule", `step of range should be a positive number: */0`},
		{"CronJob", "JAN-mar", "mar-jan", "spec.schedule", `(3) beyond end of range (1): mar-jan`},
		{"CronJob", " mon", " mo", "spec.schedule", `failed to parse int from mo`},
		{"CronJob", "*/5 0-6,22 1 JAN-mar mon", "@dayly", "spec.schedule", "is no schedule"},
		{"CronJob", "*/5", "TZ=UTC */5", "spec.schedule", "it has a time zone"},
		{"CronJob", "*/5 0-6,22 1 JAN-mar mon", "TZ=0", "spec.schedule", "it has a time zone"},
		{
			"CronJob", "restartPolicy: Never", "restartPolicy: Always",
			"spec.jobTemplate.spec.template.spec.restartPolicy", "is not possible here",
		},
		{"CronJob", "          restartPolicy: Never\n", "", "spec.jobTemplate.spec.template.spec", "need a restartPolicy"},
		{"Ingress", "host: a.b", "host: https://a.b", "spec.rules[1].host", "is no name of a host"},
		{"NetworkPolicy", "cidr: 10.0.0.0/8", "cidr: 10.0.0.0", "spec.ingress[0].from[0].ipBlock.cidr", "is no network"},
		{"NetworkPolicy", "[10.1.0.0/16]", "[11.1.0.0/16]", "spec.ingress[0].from[0].ipBlock.except", "11.1.0.0/16 is no part of 10.0.0.0/8"},
		{"HorizontalPodAutoscaler", "minReplicas: 1", "minReplicas: 2", "spec.minReplicas", "2 is more than maxReplicas, which is 1"},
		{
			"MachineDeployment", "{labels: {pool: md}}", "{labels: {pool: other}}",
			"spec.selector.matchLabels", "does not have the label pool: md",
		},
		{"MachineDeployment", "maxSurge: 25%", "maxSurge: many", "spec.rollout.strategy.rollingUpdate.maxSurge", `"many" is neither a number`},
		{
			"MachineDeployment", "min-size: \"1\"", "min-size: \"9\"",
			"metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size]",
			"least number of nodes, 9, is more than its greatest, 5",
		},
		{
			"MachineDeployment", "max-size: \"5\"", "max-size: five",
			"metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size]", `"five" is no number of nodes`,
		},
		{
			"Cluster", "10.96.0.0/12", "10.0.0.0/11", "spec.clusterNetwork.services.cidrBlocks[0]",
			"kubeadm takes no network of Services larger than /12, and it is /11",
		},
		{"Cluster", "fd00::/108", "fd00::/64", "spec.clusterNetwork.services.cidrBlocks[1]", "larger than /108, and it is /64"},
		{"Cluster", "10.96.0.0/12", "10.96.0.0/29", "spec.clusterNetwork.services.cidrBlocks[0]", "and /29 has 8"},
		{"Cluster", "10.96.0.0/12", "10.96.0.0/28", "", ""},
		{"Cluster", "10.96.0.0/12", `"${SERVICES}"`, "", ""},
		{"Cluster", "10.8.0.0/13", "10.8.0.0/29", "spec.clusterNetwork.pods.cidrBlocks[0]", "addresses for 14 pods at least, and /29 has 8"},
		{"ClusterOfEKS", "10.96.0.0/12", "10.96.0.0/25", "spec.clusterNetwork.services.cidrBlocks[0]", "between /12 and /24, and it is /25"},
		{"ClusterOfEKS", "10.96.0.0/12", "100.64.0.0/16", "spec.clusterNetwork.services.cidrBlocks[0]", "100.64.0.0/16 is not private"},
		{"MachineHealthCheck", "matchLabels: {pool: md}", "", "spec.selector", "it selects nothing"},
		{"MachineHealthCheck", "40%", "40", "", ""},
		{"MachineHealthCheck", "40%", "most", "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo", "neither a number nor a percentage"},
		{"MachineHealthCheck", ": 600", ": 10", "spec.checks.nodeStartupTimeoutSeconds", "less than 30 seconds"},
		{
			"MachineHealthCheck", "status: Unknown", "status: Maybe",
			"spec.checks.unhealthyNodeConditions[0].status", `"Maybe" is not possible here`,
		},
		{"Cluster", "cluster.local", "Cluster_Local", "spec.clusterNetwork.serviceDomain", `"Cluster_Local" is no domain`},
		{
			"KubeadmControlPlane", "NoSchedule", "NoScedule",
			"spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration.taints[0].effect", `"NoScedule" is not possible here`,
		},
		{
			"KubeadmConfigTemplate", "[{key: a, effect: NoExecute}]", "[{key: a, value: b, effect: NoExecute}, {key: a, effect: NoExecute}]",
			"spec.template.spec.initConfiguration.nodeRegistration.taints[1].key", "another taint has the key a",
		},
		{"KubeadmControlPlane", `"0640"`, "rw-r", "spec.kubeadmConfigSpec.files[0].permissions", `"rw-r" is no mode of a file`},
		{"KubeadmControlPlane", `"0640"`, `"0680"`, "spec.kubeadmConfigSpec.files[0].permissions", `"0680" is no mode of a file`},
		{"KubeadmControlPlane", "/etc/b", "/etc/a", "spec.kubeadmConfigSpec.files[1].path", "there is a file /etc/a already"},
		{
			"KubeadmControlPlane", "content: a", "content: a, contentFrom: {secret: {name: a}}",
			"spec.kubeadmConfigSpec.files[0].content", "it cannot be set together with contentFrom",
		},
		{
			"KubeadmConfigTemplate", "NoExecute", "NoExecut",
			"spec.template.spec.initConfiguration.nodeRegistration.taints[0].effect", `"NoExecut" is not possible here`,
		},
		{
			"KubeadmConfigTemplate", "passwd: b", "passwd: b, passwdFrom: {secret: {name: a}}",
			"spec.template.spec.users[0].passwd", "it cannot be set together with passwdFrom",
		},
		{"KubeadmConfigTemplate", "passwd: b", `passwd: "", passwdFrom: {secret: {name: a}}`, "", ""}, // an empty text is none
		{"KubeadmControlPlane", "replicas: 3", "replicas: -1", "spec.replicas", "at least one node"},
		{"KubeadmControlPlane", "replicas: 3", "replicas: 2", "spec.replicas", "2 is even"},
		{"KubeadmControlPlane", "replicas: 3", "replicas: 0", "spec.replicas", "at least one node"},
		{"KubeadmControlPlane", "maxSurge: 1", "maxSurge: 2", "spec.rollout.strategy.rollingUpdate.maxSurge", "a control plane takes 0 or 1"},
		{
			"KubeadmControlPlane", "replicas: 3\n  rollout: {strategy: {rollingUpdate: {maxSurge: 1",
			"replicas: 1\n  rollout: {strategy: {rollingUpdate: {maxSurge: 0",
			"spec.rollout.strategy.rollingUpdate.maxSurge", "needs at least 3 nodes",
		},
	} {
		manifest := strings.Replace(refusable[tc.kind], tc.old, tc.becomes, 1)
		if manifest == refusable[tc.kind] {
			t.Errorf("%s has no %q", tc.kind, tc.old)
		}
		found := refusedFields(t, manifest)
		if tc.field == "" {
			if len(found) > 0 {
				t.Errorf("%s with %q is refused: %v", tc.kind, tc.becomes, found)
			}
			continue
		}
		if len(found) != 1 || !strings.Contains(found[tc.field], tc.want) {
			t.Errorf("%s with %q: got %v, want %s: %s", tc.kind, tc.becomes, found, tc.field, tc.want)
		}
	}
}

// refusedFields are what is refused of an object, by field.
func refusedFields(t *testing.T, manifest string) map[string]string {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &content); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	out := map[string]string{}
	f := mapping.Fields(content)
	o := &object{Object: &render.Object{APIVersion: f.Text("apiVersion"), Kind: f.Text("kind"), Name: "a"}}
	for _, f := range checkRefused(o, content) {
		rest := strings.TrimPrefix(f.Summary, o.Kind+" a: ")
		field, summary, _ := strings.Cut(rest, ": ")
		if f.Hint == "" {
			t.Errorf("no remedy: %s", f.Summary)
		}
		out[field] = summary
	}
	return out
}
