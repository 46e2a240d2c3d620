package validate

import (
	"cmp"
	"maps"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// quiet are the rules that report something intended in these manifests: an older version of Cluster API, and kinds without their CRDs.
var quiet = []string{RuleDeprecated, RuleUnknownKind}

func TestManifestsOfProvidersAreValid(t *testing.T) {
	for _, f := range validate(t, rawRepo(), knownKinds(t)).Findings {
		if f.Rule != RuleDeprecated && f.Rule != RuleUnknownKind {
			t.Errorf("%s: %s [%s] (%s)", f.Severity, f, f.Rule, f.Hint)
		}
	}
}

// mistakes are common mistakes in the manifests of a cluster of any provider. NAME, CLUSTER, MACHINE, CORE and API are filled in. crd says
// that the mistake is found only with the CRDs of the provider.
var mistakes = []struct {
	plant
	crd bool
}{
	{plant: plant{
		name: "infrastructure that is not there", rule: RuleClusterRef, old: "name: NAME-infra\n",
		becomes: "name: NAME-infar\n", at: "NAME-infar",
	}},
	{plant: plant{
		name: "infrastructure of another kind", rule: RuleClusterRef, old: "    kind: CLUSTER\n",
		becomes: "    kind: OtherCluster\n", at: "name: NAME-infra\n",
	}},
	{plant: plant{
		name: "infrastructure in another namespace", rule: RuleClusterRef, old: "metadata: {name: NAME-infra, namespace: NAME}",
		becomes: "metadata: {name: NAME-infra, namespace: default}", at: "name: NAME-infra\n", also: []string{RuleMissingID},
	}},
	{plant: plant{
		name: "infrastructure that is taken out", rule: RuleClusterRef, old: "kind: CLUSTER\nmetadata: {name: NAME-infra",
		becomes: "kind: CLUSTER\nmetadata: {name: NAME-other", at: "name: NAME-infra\n",
	}},
	{plant: plant{
		name: "control plane that is not there", rule: RuleClusterRef, old: "name: NAME-plane\n",
		becomes: "name: NAME-plan\n", at: "NAME-plan\n",
	}},
	{plant: plant{
		name: "control plane that is none", rule: RuleClusterRef, old: "    kind: KubeadmControlPlane\n",
		becomes: "    kind: KubeadmConfigTemplate\n", at: "    kind: KubeadmConfigTemplate",
	}},
	{plant: plant{
		name: "machine template of a control plane", rule: RuleClusterRef, old: "name: NAME-cpm\n",
		becomes: "name: NAME-cp\n", at: "NAME-cp\n",
	}},
	{plant: plant{
		name: "machine template of workers", rule: RuleClusterRef, old: "name: NAME-wm\n",
		becomes: "name: NAME-w\n", at: "NAME-w\n",
	}},
	{plant: plant{
		name: "machine template of another provider", rule: RuleClusterRef, old: "        kind: MACHINE\n        name: NAME-wm\n",
		becomes: "        kind: PacketMachineTemplate\n        name: NAME-wm\n", at: "name: NAME-wm\n",
	}},
	{plant: plant{
		name: "a machine in the place of a template", rule: RuleClusterRef, old: "        kind: MACHINE\n        name: NAME-wm\n",
		becomes: "        kind: AWSMachine\n        name: NAME-wm\n", at: "kind: AWSMachine\n",
	}},
	{plant: plant{
		name: "bootstrap configuration that is not there", rule: RuleClusterRef, old: "name: NAME-cfg\n",
		becomes: "name: NAME-config\n", at: "NAME-config\n",
	}},
	{plant: plant{
		name: "bootstrap configuration that is no template", rule: RuleClusterRef, old: "          kind: KubeadmConfigTemplate\n",
		becomes: "          kind: KubeadmConfig\n", at: "          kind: KubeadmConfig\n",
	}},
	{plant: plant{
		name: "workers of no cluster", rule: RuleClusterRef, old: "  clusterName: NAME\n  replicas",
		becomes: "  clusterName: NAMEE\n  replicas", at: "  clusterName: NAMEE\n", also: []string{RuleClusterRef},
	}},
	{plant: plant{
		name: "machines of another cluster than their workers", rule: RuleClusterRef, old: "      clusterName: NAME\n",
		becomes: "      clusterName: other\n", at: "clusterName: other",
	}},
	{plant: plant{
		name: "health check of no cluster", rule: RuleClusterRef, old: "clusterName:  NAME\n", becomes: "clusterName: nothing\n",
		at: "clusterName: nothing",
	}},
	{plant: plant{
		name: "resource set without its resource", rule: RuleMissingConfig, old: "    name: NAME-cni\n",
		becomes: "    name: NAME-calico\n", at: "NAME-calico",
	}},
	{plant: plant{
		name: "resource set with a secret that is not there", rule: RuleMissingSecret, old: "  - kind: ConfigMap\n",
		becomes: "  - kind: Secret\n", at: "    name: NAME-cni\n",
	}},
	{plant: plant{
		name: "workers newer than the control plane", rule: RuleSkew, old: "version: v1.32.5",
		becomes: "version: v1.34.0", at: "v1.34.0",
	}},
	{plant: plant{name: "workers too old", rule: RuleSkew, old: "version: v1.32.5", becomes: "version: v1.29.0", at: "v1.29.0"}},
	{plant: plant{
		name: "control plane older than its workers", rule: RuleSkew, old: "version: v1.33.2", becomes: "version: v1.31.0",
		at: "version: v1.32.5",
	}},
	{plant: plant{
		name: "version with two numbers", rule: RuleValue, old: "version: v1.33.2", becomes: "version: v1.33",
		at: "version: v1.33\n",
	}},
	{plant: plant{name: "version that is none", rule: RuleValue, old: "version: v1.32.5", becomes: "version: latest", at: "version: latest"}},
	{plant: plant{
		name: "flag of kubelet that is gone", rule: RuleSkew, old: "kubeletExtraArgs:\n", becomes: "kubeletExtraArgs:\nGONE",
		at: "container-runtime",
	}},
	{plant: plant{
		name: "pods and Services in one network", rule: RuleNetworks, old: "    pods: {cidrBlocks: [192.168.0.0/16]}\n",
		becomes: "    pods: {cidrBlocks: [192.168.0.0/16]}\n    services: {cidrBlocks: [192.168.128.0/17]}\n", at: "    pods: {cidrBlocks",
	}},
	{plant: plant{
		name: "network of pods that is none", rule: RuleValue, old: "    pods: {cidrBlocks: [192.168.0.0/16]}\n",
		becomes: "    pods: {cidrBlocks: [192.168.0/16]}\n", at: "    pods: {cidrBlocks",
	}},
	{plant: plant{name: "unknown field of a Cluster", rule: RuleUnknownField, old: "    pods: {", becomes: "    podz: {", at: "podz"}},
	{plant: plant{
		name: "wrong type in a control plane", rule: RuleType, old: "  replicas: 3\n", becomes: "  replicas: three\n",
		at: "replicas: three",
	}},
	{plant: plant{
		name: "unknown field of workers", rule: RuleUnknownField, old: "  replicas: 2\n",
		becomes: "  replica: 2\n", at: "replica: 2",
	}},
	{plant: plant{
		name: "required field of workers", rule: RuleRequired, old: "  clusterName: NAME\n  replicas", becomes: "  replicas",
		at: "spec:\n  replicas: 2",
	}},
	{plant: plant{
		name: "unknown field of infrastructure", rule: RuleUnknownField,
		old:     "metadata: {name: NAME-infra, namespace: NAME}\nspec:\n",
		becomes: "metadata: {name: NAME-infra, namespace: NAME}\nspec:\n  regionn: a\n", at: "regionn",
	}, crd: true},
	{plant: plant{
		name: "unknown field of a machine template", rule: RuleUnknownField,
		old: "metadata: {name: NAME-wm, namespace: NAME}\nspec:\n  template:\n    spec:\n", becomes: "metadata: {name: NAME-wm, namespace: " +
			"NAME}\nspec:\n  template:\n    spec:\n      instanceTyp: a\n", at: "instanceTyp: a",
	}, crd: true},
	{plant: plant{
		name: "version of infrastructure that is not served", rule: RuleAPIVersion, old: "cluster.x-k8s.io/API\nkind: CLUSTER\n",
		becomes: "cluster.x-k8s.io/v1alpha2\nkind: CLUSTER\n", at: "v1alpha2",
	}, crd: true},
	{plant: plant{
		name: "wrong type in infrastructure", rule: RuleType,
		old:     "metadata: {name: NAME-wm, namespace: NAME}\nspec:\n  template:\n",
		becomes: "metadata: {name: NAME-wm, namespace: NAME}\nspec:\n  template:\n    metadata: [a]\n", at: "metadata: [a]",
	}, crd: true},
	{plant: plant{
		name: "version of Cluster API that is not served", rule: RuleAPIVersion,
		old:     "apiVersion: cluster.x-k8s.io/CORE\nkind: Cluster\n",
		becomes: "apiVersion: cluster.x-k8s.io/v1alpha2\nkind: Cluster\n", at: "v1alpha2",
	}},
	{plant: plant{
		name: "cluster without protection", rule: RulePrune,
		old:     "  namespace: NAME\n  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}",
		becomes: "  namespace: NAME\n  annotations: {a: b}", at: "annotations: {a: b}",
	}},
	{plant: plant{
		name: "namespace without protection", rule: RulePrune,
		old: "{name: NAME, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}", becomes: "{name: NAME}", at: "{name: NAME}",
	}},
	{plant: plant{
		name: "label that is none", rule: RuleMetadata, old: "metadata: {name: NAME-plane, namespace: NAME}",
		becomes: "metadata: {name: NAME-plane, namespace: NAME, labels: {a: not one}}", at: "not one",
	}},
	{plant: plant{
		name: "the same twice", rule: RuleDuplicate,
		becomes: "---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: NAME-cni, namespace: NAME}\n", at: "kind: ConfigMap\napiVersion: v1",
	}},
	{plant: plant{
		name: "a key twice", rule: RuleDuplicateField, old: "  replicas: 3\n",
		becomes: "  replicas: 3\n  replicas: 5\n", at: "replicas: 5",
	}},
	{plant: plant{
		name: "secret in clear", rule: RulePlainSecret,
		becomes: "---\napiVersion: v1\nkind: Secret\nmetadata: {name: clear, namespace: NAME}\nstringData:\n  a: hunter2\n", at: "hunter2",
	}},
	{plant: plant{
		name: "two clusters of one infrastructure", rule: RuleClusterRef, at: "name: NAME-infra}",
		becomes: "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: NAME2, namespace: NAME, annotations: " +
			"{kustomize.toolkit.fluxcd.io/prune: disabled}}\nspec:\n  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: " +
			"CLUSTER, name: NAME-infra}\n",
	}},
	{plant: plant{name: "no YAML", rule: RuleSyntax, old: "  replicas: 3\n", becomes: "  replicas: [3\n", at: "replicas: [3"}},
}

// rawPlants are the mistakes in the manifests of every provider, and the mistakes that only one provider's manifests can have.
func rawPlants(crds bool) []plant {
	var out []plant
	for _, c := range clouds {
		gone := "          - {name: container-runtime, value: remote}\n"
		if c.core == "v1beta1" {
			gone = "            container-runtime: remote\n"
		}
		fill := strings.NewReplacer("NAME", c.name, "CORE", c.core, "API", c.api, "CLUSTER", c.cluster, "MACHINE", c.machine, "GONE", gone)
		for _, m := range mistakes {
			if m.crd && !crds && c.name != "dev" {
				continue
			}
			p := m.plant
			p.name, p.file = c.name+": "+p.name, c.file()
			p.old, p.becomes, p.at = fill.Replace(p.old), fill.Replace(p.becomes), fill.Replace(p.at)
			out = append(out, p)
		}
	}
	for _, p := range ownPlants() {
		p.file = cmp.Or(p.file, "infra/classy.yaml")
		out = append(out, p)
	}
	for i := range out {
		out[i].also = append(out[i].also, quiet...)
	}
	return out
}

func ownPlants() []plant {
	return []plant{
		{name: "class that is not there", rule: RuleClusterRef, old: "      name: quick\n", becomes: "      name: quik\n", at: "name: quik\n"},
		{
			name: "class that is not there, v1beta1", rule: RuleClusterRef, old: "    class: quick\n",
			becomes: "    class: quik\n", at: "class: quik\n",
		},
		{
			name: "class of workers that is not there", rule: RuleClusterRef, old: "class: default-worker\n        name",
			becomes: "class: big-worker\n        name", at: "class: big-worker",
		},
		{
			name: "class of workers that is not there, v1beta1", rule: RuleClusterRef, old: "class:  default-worker", becomes: "class: big-worker",
			at: "class: big-worker",
		},
		{
			name: "class in another namespace", rule: RuleClusterRef, old: "      name: quick\n",
			becomes: "      name: quick\n      namespace: default\n", at: "      name: quick\n",
		},
		{name: "class's infrastructure", rule: RuleClusterRef, old: "name: quick-cluster\n", becomes: "name: quick-clster\n", at: "quick-clster"},
		{name: "class's control plane", rule: RuleClusterRef, old: "name: quick-plane\n", becomes: "name: quick-plan\n", at: "quick-plan\n"},
		{name: "class's machines", rule: RuleClusterRef, old: "name: quick-cpm\n", becomes: "name: quick-cp\n", at: "quick-cp\n"},
		{name: "class's bootstrap configuration", rule: RuleClusterRef, old: "name: quick-cfg\n", becomes: "name: quick-cf\n", at: "quick-cf\n"},
		{name: "class's workers", rule: RuleClusterRef, old: "name: quick-wm\n", becomes: "name: quick-w\n", at: "quick-w\n"},
		{
			name: "class of what is no template", rule: RuleClusterRef, old: "      kind: DevClusterTemplate\n", becomes: "      kind: DevCluster\n",
			at: "      kind: DevCluster\n",
		},
		{
			name: "class of a control plane that is no template", rule: RuleClusterRef, old: "      kind: KubeadmControlPlaneTemplate\n",
			becomes: "      kind: KubeadmControlPlane\n", at: "      kind: KubeadmControlPlane\n",
		},
		{
			name: "class with infrastructure for bootstrap", rule: RuleClusterRef,
			old:     "          apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\n          kind: KubeadmConfigTemplate\n",
			becomes: "          apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n          kind: DevMachineTemplate\n",
			at:      "          kind: DevMachineTemplate\n          name: quick-cfg",
		},
		{
			name: "unknown field of a class", rule: RuleUnknownField, old: "    machineInfrastructure:", becomes: "    machinesInfrastructure:",
			at: "machinesInfrastructure",
		},
		{
			name: "AWS identity that is not there", rule: RuleMissingID, file: "infra/aws.yaml", old: "    name: aws-id\n",
			becomes: "    name: aws-identity\n", at: "aws-identity",
		},
		{
			name: "AWS identity of another kind", rule: RuleMissingID, file: "infra/aws.yaml", old: "    kind: AWSClusterStaticIdentity\n    name",
			becomes: "    kind: AWSClusterRoleIdentity\n    name", at: "    name: aws-id\n",
		},
		{
			name: "AWS identity without its Secret", rule: RuleMissingID, file: "infra/aws.yaml", old: "secretRef: aws-key",
			becomes: "secretRef: aws-keys", at: "aws-keys",
		},
		{
			name: "AWS role of nobody", rule: RuleMissingID, file: "infra/aws.yaml",
			becomes: "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterRoleIdentity\nmetadata: {name: role}\nspec:\n  " +
				"roleARN: arn:aws:iam::123456789012:role/r\n  allowedNamespaces: {}\n  sourceIdentityRef:\n    kind: AWSClusterStaticIdentity\n    " +
				"name: nobody\n", at: "nobody",
		},
		{
			name: "AWS identity that admits nobody", rule: RuleIdentityNS, file: "infra/aws.yaml", old: "\n  allowedNamespaces: {}", becomes: "",
			at: "    name: aws-id\n",
		},
		{
			name: "AWS identity for another namespace", rule: RuleIdentityNS, file: "infra/aws.yaml", old: "allowedNamespaces: {}",
			becomes: "allowedNamespaces: {list: [other]}", at: "    name: aws-id\n",
		},
		{
			name: "AWS identity on one for other labels", rule: RuleIdentityNS, file: "infra/aws.yaml",
			old: "    kind: AWSClusterStaticIdentity\n    name: aws-id\n", becomes: "    kind: AWSClusterRoleIdentity\n    name: role\n",
			at: "    name: role\n", more: func(files map[string]string) {
				files["infra/aws.yaml"] = strings.Replace(files["infra/aws.yaml"], "allowedNamespaces: {}",
					"allowedNamespaces: {selector: {matchLabels: {team: b}}}", 1) +
					"---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterRoleIdentity\nmetadata: {name: role}\nspec:\n  roleARN: " +
					"arn:aws:iam::123456789012:role/r\n  allowedNamespaces: {list: [aws]}\n  sourceIdentityRef:\n    kind: AWSClusterStaticIdentity\n  " +
					"  name: aws-id\n"
			},
		},
		{
			name: "AWS controller's identity for another namespace", rule: RuleIdentityNS, file: "infra/aws.yaml",
			old: "    kind: AWSClusterStaticIdentity\n    name: aws-id\n", becomes: "    kind: AWSClusterControllerIdentity\n    name: default\n",
			at: "    name: default\n", more: func(files map[string]string) {
				files["infra/aws.yaml"] +=
					"---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterControllerIdentity\nmetadata: {name: default}\nspec: " +
						"{allowedNamespaces: {list: [other]}}\n"
			},
		},
		{
			name: "Azure identity for other labels", rule: RuleIdentityNS, file: "infra/azure.yaml", old: "allowedNamespaces: {}",
			becomes: "allowedNamespaces: {list: [other], selector: {matchLabels: {team: b}}}", at: "    name: azure-id\n",
		},
		{
			name: "vSphere identity for other labels", rule: RuleIdentityNS, file: "infra/vsphere.yaml", old: "{matchLabels: {}}",
			becomes: "{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [other]}]}", at: "    name: vsphere-id\n",
		},
		{
			name: "Azure identity that is not there", rule: RuleMissingID, file: "infra/azure.yaml", old: "    name: azure-id\n",
			becomes: "    name: azure-identity\n", at: "azure-identity",
		},
		{
			name: "Azure identity in another namespace", rule: RuleMissingID, file: "infra/azure.yaml", old: "    name: azure-id\n",
			becomes: "    name: azure-id\n    namespace: default\n", at: "    name: azure-id\n",
		},
		{
			name: "Azure identity without its Secret", rule: RuleMissingID, file: "infra/azure.yaml", old: "    name: azure-key\n",
			becomes: "    name: azure-kex\n", at: "azure-kex",
		},
		{
			name: "AWS identity without its key", rule: RuleMissingID, file: "infra/aws.yaml", old: "  SecretAccessKey: ENC",
			becomes: "  secretAccessKey: ENC", at: "secretRef: aws-key",
		},
		{
			name: "Azure identity without its password", rule: RuleMissingID, file: "infra/azure.yaml", old: "  clientSecret: ENC",
			becomes: "  password: ENC", at: "    name: azure-key\n",
		},
		{
			name: "vSphere identity without its user", rule: RuleMissingID, file: "infra/vsphere.yaml", old: "  username: ENC",
			becomes: "  user: ENC", at: "secretName: vsphere-key",
		},
		{
			name: "Google Cloud's Secret without its key", rule: RuleMissingID, file: "infra/gcp.yaml", old: "  credentials: ENC",
			becomes: "  key.json: ENC", at: "    name: gcp-key\n",
		},
		{
			name: "AWS nodes in the network of pods", rule: RuleNetworks, file: "infra/aws.yaml",
			old: "metadata: {name: aws-infra, namespace: aws}\nspec:\n",
			becomes: "metadata: {name: aws-infra, namespace: aws}\nspec:\n  network: {vpc: {cidrBlock: 192.168.0.0/20}, subnets: [{id: nodes, " +
				"isPublic: true, cidrBlock: 192.168.1.0/24}]}\n", at: "    pods: {cidrBlocks",
		},
		{
			name: "Azure nodes in the network of pods", rule: RuleNetworks, file: "infra/azure.yaml",
			old: "metadata: {name: azure-infra, namespace: azure}\nspec:\n",
			becomes: "metadata: {name: azure-infra, namespace: azure}\nspec:\n  networkSpec: {subnets: [{name: nodes, role: node, cidrBlocks: " +
				"[192.168.1.0/24]}]}\n", at: "    pods: {cidrBlocks",
		},
		{
			name: "GCP credentials that are not there", rule: RuleMissingID, file: "infra/gcp.yaml", old: "    name: gcp-key\n",
			becomes: "    name: gcp-kex\n", at: "gcp-kex",
		},
		{
			name: "vSphere identity that is not there", rule: RuleMissingID, file: "infra/vsphere.yaml", old: "    name: vsphere-id\n",
			becomes: "    name: vsphere-identity\n", at: "vsphere-identity",
		},
		{
			name: "vSphere identity without its Secret", rule: RuleMissingID, file: "infra/vsphere.yaml", old: "secretName: vsphere-key",
			becomes: "secretName: vsphere-kex", at: "vsphere-kex",
		},
		{
			name: "vSphere addresses of no pool", rule: RuleClusterRef, file: "infra/vsphere.yaml", at: "name: nowhere",
			becomes: "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: VSphereMachineTemplate\nmetadata: {name: pooled, " +
				"namespace: vsphere}\nspec:\n  template:\n    spec:\n      template: ubuntu\n      network:\n        devices:\n        - " +
				"networkName: net\n          addressesFromPools:\n          - apiGroup: ipam.cluster.x-k8s.io\n            kind: InClusterIPPool\n   " +
				"         name: nowhere\n",
		},
		{
			name: "file of a Secret that is not there", rule: RuleMissingSecret, file: "infra/azure.yaml", old: "      joinConfiguration:\n",
			becomes: "      files: [{path: /etc/a, contentFrom: {secret: {key: a, name: azure-wm2-azure-json}}}]\n      joinConfiguration:\n",
			at:      "azure-wm2-azure-json",
		},
		{
			name: "kubeadm of another version", rule: RuleSkew, file: "infra/aws.yaml", old: "  kubeadmConfigSpec:\n",
			becomes: "  kubeadmConfigSpec:\n    clusterConfiguration: {kubernetesVersion: v1.30.0}\n", at: "kubernetesVersion: v1.30.0",
		},
		{
			name:    "cloud provider that is gone",
			rule:    RuleSkew,
			file:    "infra/aws.yaml",
			old:     "  kubeadmConfigSpec:\n",
			becomes: "  kubeadmConfigSpec:\n    clusterConfiguration: {controllerManager: {extraArgs: {cloud-provider: aws}}}\n",
			at:      "cloud-provider: aws",
		},
		{
			name: "machine pool without its infrastructure", rule: RuleClusterRef, file: "infra/azure.yaml", at: "name: nopool",
			becomes: pool("AzureMachinePool", "nopool"),
		},
		{
			name: "machine pool of a template", rule: RuleClusterRef, file: "infra/azure.yaml", at: "kind: AzureMachineTemplate, name: azure-wm}",
			becomes: pool("AzureMachineTemplate", "azure-wm"),
		},
		{
			name: "path that is not there", rule: RuleMissingPath, file: "clusters/mgmt/infra.yaml", old: "path: ./infra",
			becomes: "path: ./infrastructure", at: "./infrastructure",
		},
		{
			name: "source that is not there", rule: RuleMissingSource, file: "clusters/mgmt/infra.yaml", old: "name: flux-system}",
			becomes: "name: flux}", at: "name: flux}", place: "clusters/mgmt/infra.yaml", also: []string{RuleForeign, RuleMissingPath},
			more: func(files map[string]string) {
				files["clusters/mgmt/infra.yaml"] = strings.Replace(files["clusters/mgmt/infra.yaml"],
					"sourceRef: {kind: GitRepository, name: flux-system}", "sourceRef: {kind: GitRepository, name: flux}", 1)
			},
		},
	}
}

// pool is a MachinePool of the Azure cluster.
func pool(kind, infra string) string {
	return "---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: azure-mp, namespace: azure}\nspec:\n  " +
		"clusterName: azure\n  replicas: 1\n  template:\n" +
		"    spec:\n      clusterName: azure\n      version: v1.32.5\n      bootstrap: {dataSecretName: \"azure-key\"}\n" +
		"      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: " + kind + ", name: " + infra + "}\n"
}

// Mistakes in manifests of five providers are found, each at its line, and nothing else is.
func TestSeededManifests(t *testing.T) {
	seedManifests(t, knownKinds(t), false)
}

// seedManifests plants every mistake by itself and prints what became of it.
func seedManifests(t *testing.T, known *schema.Set, crds bool) {
	t.Helper()
	valid := rawRepo()
	all := rawPlants(crds)
	outcomes := make([]outcome, len(all))
	var group errgroup.Group
	group.SetLimit(4)
	for i, p := range all {
		group.Go(func() error {
			outcomes[i] = p.plantIn(t, maps.Clone(valid), known)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	printOutcomes(t, outcomes)
}
