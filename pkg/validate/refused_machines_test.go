package validate

import (
	"fmt"
	"strings"
	"testing"
)

// What clouds and their providers refuse of disks, images, labels, ranges and of who may use a cluster; "" is what they take.
func TestRefusedByProviders(t *testing.T) {
	const plane, machine, role = "AWSManagedControlPlane", "AWSMachineTemplate", "arn:aws:iam::111122223333:role/a"
	disk := func(fields string) string { return "rootVolume: {" + fields + "}" }
	azureImage := func(fields string) string { return "image: {" + fields + "}" }
	azure := func(network string) string { return "{identityRef: {name: a}, networkSpec: " + network + "}" }
	confidential := func(kind, profile string) string {
		return "{osDisk: {osType: Linux, managedDisk: {securityProfile: {securityEncryptionType: " + kind + "}}}, " +
			"securityProfile: " + profile + "}"
	}
	for _, tc := range []struct{ kind, spec, want string }{
		// Disks of AWS.
		{machine, disk("size: 80, type: gp3, iops: 4000, throughput: 1000"), ""},
		{machine, disk("size: 80, type: gp3, throughput: 750"), ""},
		{machine, disk("size: 80, type: gp3, throughput: 800"), "with 3000 iops a disk has at most 750 MiB/s"},
		{machine, disk("size: 80, type: gp3, iops: 2000"), "rootVolume.iops: 2000 is not between 3000 and 80000"},
		{machine, disk("size: 8, type: gp3, iops: 5000"), "at most 500 for each GiB, so one of 8 GiB has 4000"},
		{machine, disk("size: 8, type: gp3, iops: 3000"), ""},
		{machine, disk("size: 80, type: gp2, iops: 3000"), "a disk of type gp2 takes no iops"},
		{machine, disk("size: 80, type: io1, iops: 4000"), ""},
		{machine, disk("size: 80, type: io1, iops: 4001"), "at most 50 for each GiB"},
		{machine, disk("size: 80, type: io2, iops: 300000"), "is not between 100 and 256000"},
		{machine, disk("size: 20000, type: gp2"), "has 1 to 16384 GiB, and not 20000"},
		{machine, disk("size: 500, type: st1"), "no machine starts from a disk of type st1"},
		{machine, "nonRootVolumes: [{deviceName: /dev/sdb, size: 500, type: st1}]", ""},
		{machine, "nonRootVolumes: [{deviceName: /dev/sdb, size: 100, type: sc1}]", "nonRootVolumes[0].size: a disk of type sc1 has 125"},
		{machine, disk(`size: 80, type: "${type}", iops: 5`), ""},
		// Spot machines of AWS.
		{machine, `spotMarketOptions: {maxPrice: "0.05"}`, ""},
		{machine, `spotMarketOptions: {}`, ""},
		{machine, `spotMarketOptions: {maxPrice: cheap}`, `spotMarketOptions.maxPrice: "cheap" is no price`},
		{machine, `spotMarketOptions: {maxPrice: "0"}`, "is no price"},
		{machine, `{tenancy: host, spotMarketOptions: {}}`, "spotMarketOptions: no spot machine runs on a host of its own"},
		// Load balancers and buckets of AWS.
		{
			"AWSCluster", "controlPlaneLoadBalancer: {name: internal-shop}",
			"controlPlaneLoadBalancer.name: \"internal-shop\" begins with internal-",
		},
		{"AWSCluster", "controlPlaneLoadBalancer: {name: shop-internal}", ""},
		{"AWSCluster", "s3Bucket: {name: 192.168.5.4, presignedURLDuration: 1h}", "s3Bucket.name: a bucket cannot have an address"},
		{"AWSCluster", "s3Bucket: {name: xn--shop, presignedURLDuration: 1h}", "no name of a bucket"},
		{"AWSCluster", "s3Bucket: {name: shop, presignedURLDuration: 1h, additionalIAMRoles: [{name: a, prefix: b/}]}", ""},
		{"AWSCluster", "s3Bucket: {name: shop, presignedURLDuration: 1h, additionalIAMRoles: [{name: a, prefix: /b}]}", "do not begin with /"},
		{"AWSCluster", "s3Bucket: {name: shop, presignedURLDuration: 1h, additionalIAMRoles: [{name: a}]}", "needs the prefix"},
		{
			"AWSCluster", "s3Bucket: {name: shop, presignedURLDuration: 1h, additionalIAMRoles: [{name: '" + role + "', prefix: b}]}",
			"it is an ARN",
		},
		{"AWSClusterControllerIdentity", "allowedNamespaces: {}", "metadata.name: there is one such identity alone"}, // it is called x
		// Users and addons of EKS.
		{plane, "iamAuthenticatorConfig: {mapRoles: [{rolearn: '" + role + "', username: a, groups: [b]}]}", ""},
		{plane, "iamAuthenticatorConfig: {mapRoles: [{rolearn: '" + role + "', username: a}]}", "mapRoles[0]: it needs groups"},
		{plane, "iamAuthenticatorConfig: {mapUsers: [{userarn: '" + role + "', username: a, groups: [b]}]}", "mapUsers[0].userarn"},
		{plane, "iamAuthenticatorConfig: {mapRoles: [{rolearn: admin, username: a, groups: [b]}]}", `"admin" is no ARN of a role`},
		{plane, "{version: v1.36, network: {vpc: {ipv6: {}}}}", "a cluster with IPv6 needs addons"},
		{plane, "{version: v1.36, network: {vpc: {ipv6: {}}}, addons: [{name: vpc-cni, version: v1.9.0}]}", "v1.10.2 or later"},
		{plane, "{version: v1.36, network: {vpc: {ipv6: {}}}, addons: [{name: vpc-cni, version: v1.20.0-eksbuild.1}]}", ""},
		// Images and disks of Azure.
		{"AzureMachineTemplate", azureImage("marketplace: {publisher: a, offer: b, sku: c, version: d}"), ""},
		{"AzureMachineTemplate", azureImage("marketplace: {publisher: a, offer: b, sku: c}"), "such an image needs version"},
		{
			"AzureMachineTemplate", azureImage("id: a, computeGallery: {gallery: b, name: c, version: d}"),
			"it names an image by id and by computeGallery",
		},
		{"AzureMachineTemplate", azureImage(""), "it names no image"},
		{"AzureMachineTemplate", azureImage("computeGallery: {gallery: b, name: c, version: d, resourceGroup: e}"), "it needs subscriptionID"},
		{
			"AzureMachinePool", "template: {" + azureImage("id: a, marketplace: {publisher: a, offer: b, sku: c, version: d}") + "}",
			"template.image",
		},
		{"AzureMachineTemplate", confidential("VMGuestStateOnly", "{securityType: ConfidentialVM, uefiSettings: {vTpmEnabled: true}}"), ""},
		{"AzureMachineTemplate", confidential("VMGuestStateOnly", "{uefiSettings: {vTpmEnabled: true}}"), "only a confidential machine"},
		{"AzureMachineTemplate", confidential("VMGuestStateOnly", "{securityType: ConfidentialVM}"), "needs a virtual TPM"},
		{
			"AzureMachineTemplate", confidential("DiskWithVMGuestState", "{securityType: ConfidentialVM, uefiSettings: {vTpmEnabled: true}}"),
			"needs secure boot",
		},
		// Load balancers and subnets of Azure.
		{"AzureCluster", azure("{apiServerLB: {idleTimeoutInMinutes: 60}}"), "apiServerLB.idleTimeoutInMinutes: 60 is not between 4 and 30"},
		{"AzureCluster", azure("{nodeOutboundLB: {frontendIPsCount: 17}}"), "nodeOutboundLB.frontendIPsCount: 17 is not between"},
		{"AzureCluster", azure("{controlPlaneOutboundLB: {frontendIPsCount: 1}}"), "controlPlaneOutboundLB: the load balancer of a public"},
		{"AzureCluster", azure("{apiServerLB: {type: Internal}, controlPlaneOutboundLB: {frontendIPsCount: 1}}"), ""},
		{"AzureCluster", azure("{subnets: [{name: a, serviceEndpoints: [{service: Microsoft.Storage, locations: ['*']}]}]}"), ""},
		{"AzureCluster", azure("{subnets: [{name: a, serviceEndpoints: [{service: storage, locations: ['*']}]}]}"), "no name of a service"},
		{
			"AzureCluster", azure("{subnets: [{name: a, serviceEndpoints: [{service: Microsoft.Sql}]}]}"),
			"serviceEndpoints[0]: it needs locations",
		},
		// Labels, tags and machines of Google Cloud.
		{"GCPMachineTemplate", "{instanceType: e2-standard-4, additionalLabels: {team: shop-1, cost_center: ''}}", ""},
		{"GCPMachineTemplate", "{instanceType: e2-standard-4, additionalLabels: {Team: shop}}", `"Team" is no key of a label`},
		{"GCPCluster", "{additionalLabels: {team: Shop}}", `the label team cannot have the value "Shop"`},
		{"GCPManagedMachinePool", "additionalLabels: {example.com/team: shop}", "no key of a label"},
		{
			"GCPMachineTemplate", "{instanceType: e2-standard-4, additionalNetworkTags: [web, Web]}",
			`additionalNetworkTags[1]: "Web" is no name of a tag`,
		},
		{"GCPMachineTemplate", "{instanceType: e2-standard-4, preemptible: true, onHostMaintenance: Migrate}", "does not move"},
		{"GCPMachineTemplate", "{instanceType: e2-standard-4, provisioningModel: Spot, onHostMaintenance: Terminate}", ""},
		{"GCPMachineTemplate", "{instanceType: e2-standard-4, preemptible: true, provisioningModel: Standard}", "provisioningModel: preemptible"},
		// Networks of Google Cloud.
		{"GCPCluster", "network: {name: Shop}", `network.name: "Shop" is no name of a network`},
		{"GCPCluster", "network: {mtu: 9000}", "network.mtu: 9000 is not between 1300 and 8896"},
		{"GCPCluster", "network: {subnets: [{name: a, cidrBlock: 10.0.0.0/20, secondaryCidrBlocks: {pods: 10.4.0.0/14}}]}", ""},
		{"GCPCluster", "network: {subnets: [{name: a, cidrBlock: 10.0.0.0/20}, {name: b, cidrBlock: 10.0.8.0/21}]}", "subnets[1].cidrBlock"},
		{"GCPCluster", "network: {subnets: [{name: a, cidrBlock: 10.0.0.0/20, secondaryCidrBlocks: {pods: 10.0.0.0/14}}]}", "a range before it"},
		{"GCPCluster", "network: {subnets: [{name: a, cidrBlock: 10.0.0.0/30}]}", "no subnet smaller than /29"},
		{"GCPCluster", "network: {subnets: [{name: a, cidrBlock: 10.0.0.5/20}]}", "10.0.0.5/20 is an address in 10.0.0.0/20"},
		{"GCPCluster", "network: {firewall: {firewallRules: [{name: a, allowed: [{IPProtocol: TCP, ports: ['80']}]}]}}", ""},
		{"GCPCluster", "network: {firewall: {firewallRules: [{name: a, denied: [{IPProtocol: ICMP, ports: ['80']}]}]}}", "ICMP has no ports"},
		// vSphere.
		{"VSphereMachineTemplate", "{numCPUs: 8, numCoresPerSocket: 4, memoryMiB: 8192}", ""},
		{"VSphereMachineTemplate", "{numCPUs: 6, numCoresPerSocket: 4}", "numCoresPerSocket: 6 processors do not fill sockets of 4"},
		{"VSphereMachineTemplate", "{memoryMiB: 8190}", "memoryMiB: 8190 is no multiple of 4"},
		{"VSphereCluster", "{server: vcenter.example.com, thumbprint: '" + strings.Repeat("AB:", 19) + "AB'}", ""},
		{"VSphereCluster", "{server: 'https://vcenter.example.com/sdk', thumbprint: '" + strings.Repeat("AB:", 31) + "AB'}", ""},
		{"VSphereCluster", "thumbprint: '" + strings.Repeat("ab:", 19) + "ab'", "thumbprint: "},
		{"VSphereCluster", "thumbprint: '" + strings.Repeat("AB", 20) + "'", "no fingerprint of a certificate"},
		{"VSphereCluster", "server: user@vcenter.example.com", "server: \"user@vcenter.example.com\" is no address of a vCenter"},
	} {
		requireRefused(t, tc.kind, tc.spec, tc.want)
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("l%d: a", i)
	}
	requireRefused(t, "GCPCluster", "additionalLabels: {"+strings.Join(many, ", ")+"}", "there are 65 labels")
}
