package validate

import "strings"

// ownPlants are the mistakes that only one provider's manifests can have, or that no provider has to do with.
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
			old: "metadata: {name: aws-infra, namespace: aws, " + kept + "}\nspec:\n",
			becomes: "metadata: {name: aws-infra, namespace: aws, " + kept + "}\nspec:\n" +
				"  network: {vpc: {cidrBlock: 192.168.0.0/20}, subnets: [{id: nodes, " +
				"isPublic: true, cidrBlock: 192.168.1.0/24}]}\n", at: "    pods: {cidrBlocks",
		},
		{
			name: "Azure nodes in the network of pods", rule: RuleNetworks, file: "infra/azure.yaml",
			old: "metadata: {name: azure-infra, namespace: azure, " + kept + "}\nspec:\n",
			becomes: "metadata: {name: azure-infra, namespace: azure, " + kept + "}\nspec:\n" +
				"  networkSpec: {subnets: [{name: nodes, role: node, cidrBlocks: " +
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
	return "---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: azure-mp, namespace: azure, " +
		kept + "}\nspec:\n  " +
		"clusterName: azure\n  replicas: 1\n  template:\n" +
		"    spec:\n      clusterName: azure\n      version: v1.32.5\n      bootstrap: {dataSecretName: \"azure-key\"}\n" +
		"      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: " + kind + ", name: " + infra + "}\n"
}
