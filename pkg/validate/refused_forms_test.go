package validate

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// formed are objects with nothing wrong in their texts.
var formed = map[string]string{
	"kubeadm": `apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
spec:
  clusterConfiguration:
    apiServer:
      certSANs: [api.example.com, "*.example.com", 192.0.2.10, "fd00::1"]
      extraArgs: {audit-log-maxage: "30"}
      extraVolumes: [{name: audit, hostPath: /etc/audit, mountPath: /etc/audit}]
  files: [{path: /etc/motd, owner: root:root, content: a}]
  users: [{name: ops, sshAuthorizedKeys: [ssh-ed25519 AAAA ops]}]
  ntp: {servers: [ntp.example.com]}
  joinConfiguration:
    nodeRegistration:
      criSocket: unix:///run/containerd/containerd.sock
      kubeletExtraArgs: {node-labels: "pool=md, node.kubernetes.io/a=b"}
      taints: [{key: dedicated, value: shop, effect: NoSchedule}]
`,
	"later": `apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
spec:
  joinConfiguration:
    nodeRegistration:
      kubeletExtraArgs: [{name: node-labels, value: pool=md}, {name: v, value: "2"}]
`,
	"pod": `apiVersion: v1
kind: Pod
spec:
  containers:
  - name: a
    image: ghcr.io/acme/web:v1.0@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    env: [{name: MODE, value: a}, {name: LEVEL, value: b}]
    ports: [{name: http, containerPort: 80}, {containerPort: 81}]
`,
	"role": `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
rules:
- {apiGroups: [apps, ""], resources: [deployments, pods/log, deployments/finalizers, services/finalizers, nodes/stats], verbs: [get]}
`,
	"policy": `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
spec: {ingress: [{ports: [{port: 8080}]}]}
`,
	"claim": `apiVersion: v1
kind: PersistentVolumeClaim
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
`,
	"cron": `apiVersion: batch/v1
kind: CronJob
spec: {schedule: "0 3 * * *", timeZone: Europe/Berlin}
`,
	"ingress": `apiVersion: networking.k8s.io/v1
kind: Ingress
spec: {tls: [{hosts: [shop.example.com, "*.example.com"]}]}
`,
	"oci": `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {url: "oci://localhost:5000/acme/redis", ref: {tag: 1.2.3}}
`,
	"scan": `apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
spec: {image: ghcr.io/acme/web}
`,
	"workers": `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {labels: {cluster.x-k8s.io/cluster-name: a}}
spec:
  clusterName: a
  template: {spec: {nodeDrainTimeout: 5m, bootstrap: {dataSecretName: a}}}
`,
	"check": `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineHealthCheck
spec: {clusterName: a, selector: {matchLabels: {a: b}}, unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m}]}
`,
	"cluster": `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
spec:
  controlPlaneEndpoint: {host: api.example.com, port: 6443}
  controlPlaneRef: {kind: KubeadmControlPlane}
  clusterNetwork: {pods: {cidrBlocks: [10.8.0.0/16, "fd00:1::/64"]}}
`,
	"aws": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
spec:
  region: eu-central-1
  network:
    vpc: {id: vpc-0123456789abcdef0}
    subnets: [{id: subnet-0123456789abcdef0}]
    additionalControlPlaneIngressRules: [{description: a, protocol: tcp, fromPort: 2379, toPort: 2380, cidrBlocks: [10.0.0.0/8]}]
`,
	"awsmachine": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
spec: {template: {spec: {instanceType: m7i.large, ami: {id: ami-0123456789abcdef0}, rootVolume: {size: 80, type: gp3},
  additionalSecurityGroups: [{id: sg-0123456789abcdef0}]}}}
`,
	"azure": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureCluster
spec:
  location: westeurope
  identityRef: {kind: AzureClusterIdentity, name: a}
  networkSpec:
    subnets:
    - name: cp
      role: control-plane
      securityGroup:
        securityRules: [{name: a, direction: Inbound, priority: 200, protocol: Tcp, source: 10.0.0.0/8, destinationPorts: 22-80}]
    - {name: node, role: node}
`,
	"gcp": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: GCPMachineTemplate
spec: {template: {spec: {instanceType: e2-standard-4, image: projects/a/global/images/b, serviceAccounts: {email: default}}}}
`,
	"zones": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: GCPCluster
spec: {project: my-project, region: europe-west3, failureDomains: [europe-west3-a, europe-west3-b]}
`,
	"vsphere": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereMachine
spec:
  cloneMode: fullClone
  network: {devices: [{networkName: a, macAddr: "00:50:56:00:00:01", gateway4: 192.0.2.1, nameservers: [192.0.2.2]}]}
`,
	"openstack": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: OpenStackMachine
spec: {flavor: a, ports: [{vnicType: normal}]}
`,
	"rules": `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: OpenStackCluster
spec:
  controlPlaneEndpoint: {host: 192.0.2.1, port: 6443}
  managedSubnets: [{cidr: 10.6.0.0/24, dnsNameservers: [192.0.2.53]}]
  managedSecurityGroups:
    allNodesSecurityGroupRules: [{name: a, direction: ingress, protocol: vrrp, remoteManagedGroups: [worker]}]
`,
}

// Texts that a schema takes, and that the API server, kubeadm, the kubelet, Flux or a cloud refuses; "" is what they take.
func TestRefusedForms(t *testing.T) {
	for _, tc := range []struct{ object, old, becomes, want string }{
		{"kubeadm", "api.example.com,", "https://api.example.com,", "certSANs[0]"},
		{"kubeadm", "api.example.com,", `"api.example.com:6443",`, "certSANs[0]"},
		{"kubeadm", "192.0.2.10", "192.0.2.0/24", "certSANs[2]"},
		{"kubeadm", "api.example.com,", `"${HOST}:1",`, ""},
		{"kubeadm", "audit-log-maxage:", "--audit-log-maxage:", "write audit-log-maxage"},
		{"kubeadm", "audit-log-maxage:", "audit-log-maxage=30:", "no name of a flag"},
		{"kubeadm", "hostPath: /etc", "hostPath: etc", "extraVolumes[0].hostPath"},
		{"kubeadm", "mountPath: /etc", "mountPath: etc", ""}, // below the folder of the container's files
		{"cron", "Europe/Berlin", "Berlin", "is no time zone"},
		{"kubeadm", "path: /etc/motd", "path: etc/motd", ""},
		{"kubeadm", "files: [{path: /etc/motd", "format: ignition\n  files: [{path: etc/motd", "files[0].path"},
		{"kubeadm", "path: /etc/motd", "path: /etc/", "is a folder"},
		{"kubeadm", "path: /etc/motd", `path: 'C:\a'`, ""},
		{"kubeadm", "owner: root:root", "owner: adm root", "files[0].owner"},
		{"kubeadm", "name: ops", "name: ops team", "users[0].name"},
		{"kubeadm", "ssh-ed25519 AAAA ops", "/home/ops/.ssh/id.pub", "sshAuthorizedKeys[0]"},
		{"kubeadm", "ntp.example.com", "https://ntp.example.com", "servers[0]"},
		{"kubeadm", "unix:///run", "tcp:///run", "criSocket"},
		{"kubeadm", "unix:///run", "unix://run", "criSocket"},
		{"kubeadm", "unix:///run", "/run", ""},
		{"kubeadm", "unix:///run/containerd/", "", "criSocket"},
		{"kubeadm", `"pool=md, `, `"pool: md, `, "is no label"},
		{"kubeadm", `"pool=md, `, `"gpu, `, ""}, // with an empty value
		{"kubeadm", `"pool=md, `, `"@@pool@@, `, ""},
		{"kubeadm", "api.example.com,", "__API_HOST__,", ""},
		{"kubeadm", "api.example.com,", "'{% if a %}a{% endif %}',", ""},
		{"kubeadm", "owner: root:root", "owner: 'root: root'", ""},
		{"kubeadm", "owner: root:root", "owner: 'root: the root'", "files[0].owner"},
		{"kubeadm", `"pool=md, `, `"node-role.kubernetes.io/worker=, `, "may not give its node"},
		{"kubeadm", `"pool=md, `, `"pool={{ ds.pool }}, `, ""},
		{"kubeadm", "key: dedicated", "key: dedi cated", "taints[0].key"},
		{"kubeadm", "value: shop", "value: a b", "taints[0].value"},
		{"later", "name: v,", "name: --v,", "kubeletExtraArgs[1].name"},
		{"later", "value: pool=md", "value: pool,", ""},
		{"later", "value: pool=md", "value: pool=m d", "kubeletExtraArgs[0].value"},
		{"pod", "ghcr.io/acme/web", "https://ghcr.io/acme/web", "is no part of an image"},
		{"pod", "ghcr.io/acme/web", "ghcr.io/Acme/web", "is no image"},
		{"pod", "web:v1.0", "web:v1.0:2", "is no image"},
		{"pod", "web:v1.0", "web:${TAG}", ""},
		{"pod", "name: MODE", "name: MODE=a", "env[0].name"},
		{"pod", "name: LEVEL", "name: MODE", "env[1].name"},
		{"pod", "name: http", "name: Http", "ports[0].name"},
		{"pod", "containerPort: 81", "containerPort: 80", "ports[1].containerPort"},
		{"pod", "{containerPort: 81}", "{containerPort: 80, protocol: UDP}", ""},
		{"role", "[deployments, pods/log, deployments/finalizers, services/finalizers, nodes/stats]", "[deployment]", "the plural, deployments"},
		{"role", "pods/log", "pod", ""}, // beside others, it does no harm
		{"role", "pods/log", "pods/logs", "did you mean pods/log"},
		{"role", "nodes/stats", "nodes/statusz", ""},
		{"role", "nodes/stats", "pods/finalizers", ""},
		{"role", "[apps,", "[app,", ""},
		{"role", `[apps, ""]`, "[app]", "apiGroups[0]"},
		{"role", "[get]", "[read]", "write get, list and watch"},
		{"role", `[apps, ""]`, "[example.com]", ""},
		{"policy", "8080", "80800", "80800 is no port"},
		{"claim", "10Gi", "0", "not more than 0"},
		{"claim", "10Gi", "-1Gi", "not more than 0"},
		{"ingress", "[shop.", "[https://shop.", "hosts[0]"},
		{"oci", "acme/redis", "acme/redis:1.2.3", "write it under ref"},
		{"oci", "acme/redis", "Acme/redis", "no address in a registry"},
		{"oci", "tag: 1.2.3", "tag: 1.2.3+a", "has a version with +"},
		{"oci", "tag: 1.2.3", "digest: 1.2.3", "is no digest"},
		{"scan", "acme/web", "acme/web:1.0", "has a tag or a digest"},
		{"workers", "cluster-name: a", "cluster-name: b", "is another cluster"},
		{"workers", "nodeDrainTimeout: 5m", "nodeDrainTimeout: 5 minutes", "no length of time"},
		{"check", "timeout: 5m", "timeout: 5", ""}, // a number is a wrong type
		{"check", "timeout: 5m", "timeout: 5 m", "unhealthyConditions[0].timeout"},
		{"cluster", "host: api", "host: https://api", "controlPlaneEndpoint.host"},
		{"cluster", "port: 6443", "port: 644300", "is no port"},
		{"cluster", `"fd00:1::/64"`, "10.9.0.0/16", "second range of one family"},
		{"aws", "fromPort: 2379", "fromPort: 2399", "more than toPort"},
		{"aws", "toPort: 2380", "toPort: 72380", "72380 is no port"},
		{"aws", "protocol: tcp, fromPort: 2379", "protocol: icmp, fromPort: 2399", ""},
		{"awsmachine", "ami-0123456789abcdef0", "ubuntu", "begins with ami-"},
		{"awsmachine", "ami-0123456789abcdef0", "'resolve:ssm:/acme/ubuntu'", ""},
		{"awsmachine", "{id: sg-0123456789abcdef0}", "{id: nodes}", "begins with sg-"},
		{"aws", "vpc-0123456789abcdef0", "main", "begins with vpc-"},
		{"awsmachine", "gp3", "ssd", "no type of a disk"},
		{"azure", "22-80", "80-22", "no range of ports"},
		{"azure", "22-80", "22-", "are no ports"},
		{"azure", "10.0.0.0/8", "10.0.0.0/33", "is no network"},
		{"gcp", "image: projects", "imageFamily: a, image: projects", ""}, // image goes first
		{"gcp", "image: projects/a/global/images/b", "imageFamily: ubuntu", "projects/PROJECT/global/images/family/ubuntu"},
		{"gcp", "image: projects/a/global/images/b", "imageFamily: projects/a/global/images/family/b", ""},
		{"gcp", "projects/a/global/images/b", "b", "projects/PROJECT/global/images/b"},
		{"gcp", "email: default", "email: nodes", "no address of a service account"},
		{"zones", "europe-west3-b", "europe-west3-a", ""},
		{"vsphere", "fullClone", "full", ""}, // CAPV takes what it does not know for a full clone
		{"vsphere", `"00:50:56:00:00:01"`, "a", "macAddr"},
		{"vsphere", "gateway4: 192.0.2.1", "gateway4: 192.0.2.1/24", "gateway4"},
		{"vsphere", "gateway4: 192.0.2.1", "gateway6: 192.0.2.1", "gateway6"},
		{"vsphere", "gateway4: 192.0.2.1", "gateway6: fe80::1", ""},
		{"vsphere", "[192.0.2.2]", "[dns.example.com]", "nameservers[0]"},
		{"rules", "vrrp", "http", "knows no protocol"},
		{"rules", "vrrp", "'112'", ""},
		{"rules", "vrrp", "'256'", "knows no protocol"},
		{"rules", "vrrp", "UDP", ""},
		{"openstack", "vnicType: normal", "vnicType: sriov", "vnicType"},
	} {
		manifest := strings.Replace(formed[tc.object], tc.old, tc.becomes, 1)
		if manifest == formed[tc.object] {
			t.Errorf("%s has no %q", tc.object, tc.old)
		}
		found := refusedWords(t, manifest)
		if tc.want == "" && found != "" || !strings.Contains(found, tc.want) || strings.Count(found, "\n") > 1 {
			t.Errorf("%s with %q: got %q, want %q", tc.object, tc.becomes, found, tc.want)
		}
	}
	for name, manifest := range formed {
		if found := refusedWords(t, manifest); found != "" {
			t.Errorf("%s is refused: %s", name, found)
		}
	}
}

// Cluster API accepts workers with the label of another Cluster, and replaces the label.
func TestLabelOfAnotherClusterIsAWarning(t *testing.T) {
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(strings.Replace(formed["workers"], "cluster-name: a", "cluster-name: b", 1)), &content); err != nil {
		t.Fatal(err)
	}
	o := &object{Object: &render.Object{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachineDeployment", Name: "web"}}
	if found := checkRefused(o, content); len(found) != 1 || found[0].Severity != diag.SeverityWarning {
		t.Errorf("got %v", found)
	}
}

// A chart may name what only other versions of Kubernetes have, and its user cannot change it.
func TestNamesInRolesOfChartsAreTheirOwn(t *testing.T) {
	for _, manifest := range []string{
		strings.Replace(formed["role"], `[apps, ""]`, "[app]", 1), strings.Replace(formed["role"], "pods/log", "pods/logs", 1),
	} {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(manifest), &content); err != nil {
			t.Fatal(err)
		}
		o := &render.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Name: "web"}
		for template, want := range map[string]int{"": 1, "web-1.2.0.tgz/templates/a.yaml": 0} {
			o.Template = template
			if found := checkRefused(&object{Object: o}, content); len(found) != want {
				t.Errorf("%q has %v", template, found)
			}
		}
	}
}

// refusedWords are the findings about an object, one a line, with their hints.
func refusedWords(t *testing.T, manifest string) (out string) {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &content); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	f := mapping.Fields(content)
	o := &object{Object: &render.Object{APIVersion: f.Text("apiVersion"), Kind: f.Text("kind"), Name: "web"}}
	for _, f := range checkRefused(o, content) {
		out += f.Summary + " (" + f.Hint + ")\n"
	}
	return out
}
