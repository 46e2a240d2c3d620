package validate

import "strings"

// plantsRefused are errors that a cloud or its provider finds long after the API server took the object. Each stands in the line with at.
func plantsRefused() (out []plant) {
	for _, p := range []struct{ name, kind, spec, at string }{
		{"a disk with too many iops", "AWSMachineTemplate", "rootVolume:\n  size: 8\n  type: gp3\n  iops: 9000", "iops: 9000"},
		{"a disk that nothing starts from", "AWSMachineTemplate", "rootVolume:\n  size: 500\n  type: st1", "type: st1"},
		{"a spot machine without a price", "AWSMachineTemplate", "spotMarketOptions:\n  maxPrice: cheap", "maxPrice: cheap"},
		{"a load balancer called internal-", "AWSCluster", "controlPlaneLoadBalancer:\n  name: internal-a", "name: internal-a"},
		{"a bucket with an address", "AWSCluster", "s3Bucket:\n  presignedURLDuration: 1h\n  name: 192.0.2.7", "name: 192.0.2.7"},
		{"two images", "AzureMachineTemplate", "image:\n  id: a\n  computeGallery: {gallery: b, name: c, version: d}", "image:"},
		{
			"a load balancer that waits too long", "AzureCluster",
			"identityRef: {name: a}\nnetworkSpec:\n  nodeOutboundLB:\n    idleTimeoutInMinutes: 60", "idleTimeoutInMinutes: 60",
		},
		{"a label with capitals", "GCPMachineTemplate", "instanceType: e2-standard-4\nadditionalLabels:\n  Team: a", "additionalLabels:"},
		{"a network tag with capitals", "GCPMachineTemplate", "instanceType: e2-standard-4\nadditionalNetworkTags:\n- Web", "- Web"},
		{
			"subnets that overlap", "GCPCluster",
			"network:\n  subnets:\n  - {name: a, cidrBlock: 10.0.0.0/20}\n  - name: b\n    cidrBlock: 10.0.8.0/21", "cidrBlock: 10.0.8.0/21",
		},
		{"packets that are too large", "GCPCluster", "network:\n  mtu: 9000", "mtu: 9000"},
		{
			"a cluster of Azure Service Operator without its ManagedCluster", "AzureASOManagedControlPlane",
			"resources:\n- {apiVersion: resources.azure.com/v1api20200601, kind: ResourceGroup}", "resources:",
		},
		{
			"a pool for the system on spot machines", "AzureManagedMachinePool", "mode: System\nname: a\nscaleSetPriority: Spot",
			"scaleSetPriority:",
		},
		{"a subscription by its name", "AzureManagedControlPlane", "subscriptionID: production", "subscriptionID:"},
		{"a disk of a type that is none", "GCPMachineTemplate", "instanceType: e2-standard-4\nrootDeviceType: ssd", "rootDeviceType: ssd"},
		{"a range for the control plane of GKE", "GCPManagedControlPlane", "clusterNetwork:\n  privateCluster:\n    controlPlaneCidrBlock: " +
			"172.16.0.0/24", "controlPlaneCidrBlock:"},
		{"names that nothing can have", "VSphereMachineTemplate", "namingStrategy:\n  template: '{{ .machine.name }}_vm'", "template: '{{"},
		{"sockets that are not full", "VSphereMachineTemplate", "numCPUs: 6\nnumCoresPerSocket: 4", "numCoresPerSocket: 4"},
		{
			"ports in the wrong order", "AWSCluster", "network:\n  cni:\n    cniIngressRules:\n    - description: a\n      protocol: tcp\n" +
				"      fromPort: 180\n      toPort: 179", "fromPort: 180",
		},
		{
			"an address of a network card that is none", "VSphereMachineTemplate", "network:\n  devices:\n  - networkName: a\n    macAddr: none",
			"macAddr:",
		},
		{"memory that is no multiple of 4", "VSphereMachineTemplate", "memoryMiB: 8190", "memoryMiB: 8190"},
	} {
		version, indent, above := "v1beta2", "  ", "spec:\n"
		if strings.HasPrefix(p.kind, "VSphere") || strings.HasPrefix(p.kind, "Azure") || strings.HasPrefix(p.kind, "GCP") {
			version = "v1beta1"
		}
		if strings.HasSuffix(p.kind, "Template") {
			indent, above = "      ", "spec:\n  template:\n    spec:\n"
		}
		out = append(out, plant{
			name: p.name, rule: RuleRefused, file: platform + "refused.yaml", at: p.at, also: []string{RuleUnknownKind},
			becomes: "apiVersion: infrastructure.cluster.x-k8s.io/" + version + "\nkind: " + p.kind +
				"\nmetadata: {name: raw, namespace: platform}\n" + above + indent + strings.ReplaceAll(p.spec, "\n", "\n"+indent) + "\n",
		})
	}
	return out
}
