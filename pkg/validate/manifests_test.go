package validate

import (
	"fmt"
	"strings"
)

// cloud is a provider whose clusters stand in a repo as they are.
type cloud struct {
	name string
	// cluster and machine are its kinds, api their version, core that of Cluster API's own.
	cluster, machine, api, core string
	// spec and template are the required fields of its kinds.
	spec, template string
	// credentials are objects, and identity is the field of the cluster that names them.
	credentials, identity string
}

var clouds = []cloud{
	{
		name: "aws", cluster: "AWSCluster", machine: "AWSMachineTemplate", api: "v1beta2", core: "v1beta1",
		spec: "  region: eu-central-1\n", template: "      instanceType: m7i.large\n",
		identity: "  identityRef:\n    kind: AWSClusterStaticIdentity\n    name: aws-id\n",
		credentials: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterStaticIdentity\nmetadata: {name: aws-id}\nspec:\n  " +
			"secretRef: aws-key\n  allowedNamespaces: {}\n---\n" + sopsSecret("aws-key", "capa-system", "AccessKeyID", "SecretAccessKey"),
	},
	{
		name: "azure", cluster: "AzureCluster", machine: "AzureMachineTemplate", api: "v1beta1", core: "v1beta1",
		spec:     "  location: westeurope\n  subscriptionID: 00000000-0000-0000-0000-000000000000\n",
		template: "      vmSize: Standard_D4s_v5\n      osDisk: {osType: Linux, diskSizeGB: 128}\n",
		identity: "  identityRef:\n    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n    kind: AzureClusterIdentity\n    name: " +
			"azure-id\n",
		credentials: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AzureClusterIdentity\nmetadata: {name: azure-id, namespace: " +
			"azure}\nspec:\n  type: ServicePrincipal\n  tenantID: 00000000-0000-0000-0000-000000000000\n  clientID: " +
			"00000000-0000-0000-0000-000000000000\n  allowedNamespaces: {}\n  clientSecret:\n    namespace: azure\n    name: azure-key\n---\n" +
			sopsSecret("azure-key", "azure", "clientSecret"),
	},
	{
		name: "gcp", cluster: "GCPCluster", machine: "GCPMachineTemplate", api: "v1beta1", core: "v1beta2",
		spec:        "  project: my-project\n  region: europe-west3\n  network: {name: default}\n",
		template:    "      instanceType: e2-standard-4\n      image: projects/my-project/global/images/ubuntu\n",
		identity:    "  credentialsRef:\n    namespace: gcp\n    name: gcp-key\n",
		credentials: sopsSecret("gcp-key", "gcp", "credentials"),
	},
	{
		name: "vsphere", cluster: "VSphereCluster", machine: "VSphereMachineTemplate", api: "v1beta1", core: "v1beta2",
		spec:     "  server: vcenter.example.com\n  controlPlaneEndpoint: {host: 192.0.2.1, port: 6443}\n",
		template: "      template: ubuntu\n      numCPUs: 4\n      network: {devices: [{networkName: net, dhcp4: true}]}\n",
		identity: "  identityRef:\n    kind: VSphereClusterIdentity\n    name: vsphere-id\n",
		credentials: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: VSphereClusterIdentity\nmetadata: {name: vsphere-id}\nspec:\n" +
			"  secretName: vsphere-key\n  allowedNamespaces: {selector: {matchLabels: {}}}\n---\n" +
			sopsSecret("vsphere-key", "capv-system", "username", "password"),
	},
	{
		name: "dev", cluster: "DevCluster", machine: "DevMachineTemplate", api: "v1beta2", core: "v1beta2",
		spec: "  backend: {inMemory: {}}\n", template: "      backend: {inMemory: {}}\n",
	},
}

func sopsSecret(name, namespace string, keys ...string) string {
	fields := ""
	for _, key := range keys {
		fields += "  " + key + ": ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]\n"
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData:\n%ssops:\n  lastmodified: "+
		"\"2026-01-01T00:00:00Z\"\n", name, namespace, fields)
}

// ref is a reference as the version of Cluster API has it.
func (c cloud) ref(indent int, what, api, kind, name string) string {
	space := strings.Repeat(" ", indent)
	group := what + ".cluster.x-k8s.io"
	if c.core == "v1beta1" {
		return fmt.Sprintf("%sapiVersion: %s/%s\n%skind: %s\n%sname: %s\n", space, group, api, space, kind, space, name)
	}
	return fmt.Sprintf("%sapiGroup: %s\n%skind: %s\n%sname: %s\n", space, group, space, kind, space, name)
}

func (c cloud) file() string { return "infra/" + c.name + ".yaml" }

// kept is the annotation of what Flux does not prune.
const kept = "annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}"

// manifests are a cluster as people write it down: without a chart, every object by itself.
func (c cloud) manifests() string {
	machineTemplate, args, port := "    spec:\n      infrastructureRef:\n"+c.ref(8, "infrastructure", c.api, c.machine, c.name+"-cpm"),
		"          - name: v\n            value: \"2\"\n", "apiServerPort: 6443"
	remediation := "  checks:\n    nodeStartupTimeoutSeconds: 1200\n    unhealthyNodeConditions: [{type: Ready, status: Unknown, " +
		"timeoutSeconds: 300}]\n"
	if c.core == "v1beta1" {
		machineTemplate, args = "    infrastructureRef:\n"+c.ref(6, "infrastructure", c.api, c.machine, c.name+"-cpm"), "            v: \"2\"\n"
		remediation = "  nodeStartupTimeout: 20m\n  unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m}]\n"
	}
	text := `apiVersion: v1
kind: Namespace
metadata: {name: NAME, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
---
apiVersion: cluster.x-k8s.io/CORE
kind: Cluster
metadata:
  name: NAME
  namespace: NAME
  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}
  labels: {cni: NAME}
spec:
  clusterNetwork:
    PORT
    pods: {cidrBlocks: [192.168.0.0/16]}
  infrastructureRef:
` + c.ref(4, "infrastructure", c.api, c.cluster, c.name+"-infra") + `  controlPlaneRef:
` + c.ref(4, "controlplane", c.core, "KubeadmControlPlane", c.name+"-plane") + `---
apiVersion: infrastructure.cluster.x-k8s.io/API
kind: CLUSTER
metadata: {name: NAME-infra, namespace: NAME, KEPT}
spec:
` + c.spec + c.identity + `---
apiVersion: controlplane.cluster.x-k8s.io/CORE
kind: KubeadmControlPlane
metadata: {name: NAME-plane, namespace: NAME, KEPT}
spec:
  replicas: 3
  version: v1.33.2
  machineTemplate:
` + machineTemplate + `  kubeadmConfigSpec:
    initConfiguration: {nodeRegistration: {name: first}}
---
apiVersion: infrastructure.cluster.x-k8s.io/API
kind: MACHINE
metadata: {name: NAME-cpm, namespace: NAME}
spec:
  template:
    spec:
` + c.template + `---
apiVersion: cluster.x-k8s.io/CORE
kind: MachineDeployment
metadata: {name: NAME-md, namespace: NAME, KEPT}
spec:
  clusterName: NAME
  replicas: 2
  selector: {matchLabels: {pool: md}}
  template:
    metadata: {labels: {pool: md}}
    spec:
      clusterName: NAME
      version: v1.32.5
      bootstrap:
        configRef:
` + c.ref(10, "bootstrap", c.core, "KubeadmConfigTemplate", c.name+"-cfg") + `      infrastructureRef:
` + c.ref(8, "infrastructure", c.api, c.machine, c.name+"-wm") + `---
apiVersion: infrastructure.cluster.x-k8s.io/API
kind: MACHINE
metadata: {name: NAME-wm, namespace: NAME}
spec:
  template:
    spec:
` + c.template + `---
apiVersion: bootstrap.cluster.x-k8s.io/CORE
kind: KubeadmConfigTemplate
metadata: {name: NAME-cfg, namespace: NAME}
spec:
  template:
    spec:
      joinConfiguration:
        nodeRegistration:
          kubeletExtraArgs:
` + args + `---
apiVersion: cluster.x-k8s.io/CORE
kind: MachineHealthCheck
metadata: {name: NAME-mhc, namespace: NAME}
spec:
  clusterName:  NAME
  selector: {matchLabels: {pool: md}}
` + remediation + `---
apiVersion: addons.cluster.x-k8s.io/CORE
kind: ClusterResourceSet
metadata: {name: NAME-crs, namespace: NAME}
spec:
  strategy: ApplyOnce
  clusterSelector: {matchLabels: {cni: NAME}}
  resources:
  - kind: ConfigMap
    name: NAME-cni
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-cni, namespace: NAME}
data: {a: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: cni, namespace: kube-system}}"}
`
	if c.credentials != "" {
		text += "---\n" + c.credentials
	}
	return strings.NewReplacer("NAME", c.name, "CORE", c.core, "API", c.api, "CLUSTER", c.cluster, "MACHINE", c.machine,
		"PORT", port, "KEPT", kept).Replace(text)
}

// classy is a cluster of a ClusterClass.
const classy = `apiVersion: v1
kind: Namespace
metadata: {name: classy, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick, namespace: classy}
spec:
  infrastructure:
    templateRef:
      apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
      kind: DevClusterTemplate
      name: quick-cluster
  controlPlane:
    templateRef:
      apiVersion: controlplane.cluster.x-k8s.io/v1beta2
      kind: KubeadmControlPlaneTemplate
      name: quick-plane
    machineInfrastructure:
      templateRef:
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
        kind: DevMachineTemplate
        name: quick-cpm
  workers:
    machineDeployments:
    - class: default-worker
      bootstrap:
        templateRef:
          apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
          kind: KubeadmConfigTemplate
          name: quick-cfg
      infrastructure:
        templateRef:
          apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
          kind: DevMachineTemplate
          name: quick-wm
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevClusterTemplate
metadata: {name: quick-cluster, namespace: classy}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlaneTemplate
metadata: {name: quick-plane, namespace: classy}
spec: {template: {spec: {kubeadmConfigSpec: {initConfiguration: {nodeRegistration: {name: first}}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: quick-cpm, namespace: classy}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: quick-wm, namespace: classy}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: quick-cfg, namespace: classy}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {name: next}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: classy, namespace: classy, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec:
  topology:
    classRef:
      name: quick
    version: v1.33.2
    controlPlane: {replicas: 3}
    workers:
      machineDeployments:
      - class: default-worker
        name: a
        replicas: 2
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: older, namespace: classy, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec:
  topology:
    class: quick
    version: v1.33.2
    workers:
      machineDeployments:
      - class:  default-worker
        name: a
`

// rawRepo is a repo of Flux with clusters of five providers, and without a fleet.yaml.
func rawRepo() map[string]string {
	files := map[string]string{
		"clusters/mgmt/flux-system/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " +
			"gotk-sync.yaml\n",
		"clusters/mgmt/flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 1m
  ref: {branch: main}
  secretRef: {name: flux-system}
  url: https://git.example.com/acme/infra.git
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m
  path: ./clusters/mgmt
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
		"clusters/mgmt/infra.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: infra, namespace: flux-system}
spec:
  interval: 10m
  path: ./infra
  decryption: {provider: sops}
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
		"infra/classy.yaml": classy,
	}
	for _, c := range clouds {
		files[c.file()] = c.manifests()
	}
	return files
}
