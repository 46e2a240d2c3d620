package validate

import (
	"strings"
	"testing"
)

// asoCluster and asoAgents begin what Azure Service Operator makes a cluster and a pool of.
const (
	asoCluster = "{apiVersion: containerservice.azure.com/v1api20240901, kind: ManagedCluster, "
	asoAgents  = "{apiVersion: containerservice.azure.com/v1api20240901, kind: ManagedClustersAgentPool, "
)

// What other clouds refuse. In each spec one thing is wrong, and the field is named.
func TestRefusedByOtherClouds(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, tc := range []struct{ kind, spec, want string }{
		{
			"VSphereMachineTemplate", "{network: {preferredAPIServerCidr: 10.0.0.0/8}}",
			"network.preferredAPIServerCidr: the provider does not use it",
		},
		{"VSphereMachineTemplate", "providerID: vsphere://a", "providerID: a template cannot have it"},
		{
			"VSphereMachineTemplate", "network: {devices: [{networkName: a, ipAddrs: [10.0.0.1/24]}]}",
			"network.devices[0].ipAddrs: a template cannot have addresses",
		},
		{"VSphereMachine", "network: {devices: [{ipAddrs: [10.0.0.1]}]}", `network.devices[0].ipAddrs[0]: "10.0.0.1" is no address`},
		{"VSphereMachineTemplate", "hardwareVersion: vmx17", `hardwareVersion: "vmx17" is no version`},
		{"VSphereMachineTemplate", "guestSoftPowerOffTimeout: 5m", "guestSoftPowerOffTimeout: only a machine with powerOffMode trySoft"},
		{"VSphereMachineTemplate", "{powerOffMode: trySoft, guestSoftPowerOffTimeout: 0s}", "it is not more than 0"},
		{"VSphereMachineTemplate", "pciDevices: [{deviceId: 1}]", "pciDevices[0]: a device is named by"},
		{
			"VSphereFailureDomain", "{region: {type: Datacenter}, zone: {type: ComputeCluster}, topology: {datacenter: a}}",
			"zone.type: a cluster of hosts needs topology.computeCluster",
		},
		{"VSphereFailureDomain", "{region: {type: HostGroup}, topology: {computeCluster: a, hosts: {}}}", "region.type: a region cannot be"},
		{
			"VSphereFailureDomain", "{zone: {type: HostGroup}, topology: {computeCluster: a}}",
			"zone.type: a group of hosts needs topology.hosts",
		},
		{
			"VSphereFailureDomain", "topology: {networks: [a], networkConfigurations: [{networkName: a}]}",
			"topology.networks: it cannot be set together",
		},

		{"AzureCluster", "{location: westeurope}", "spec: a cluster needs an identity"},
		{
			"AzureCluster", "{identityRef: {kind: AzureClusterIdentity, name: a}, networkSpec: {vnet: {resourceGroup: a, cidrBlocks: " +
				"[10.0.0.0/16]}, subnets: [{name: a, role: node, cidrBlocks: [10.1.0.0/24]}, {name: b, role: control-plane}]}}",
			"networkSpec.subnets[0].cidrBlocks: 10.1.0.0/24 is not within",
		},
		{"AzureCluster", "{identityRef: {kind: AzureClusterIdentity, name: a}, networkSpec: {vnet: {resourceGroup: a}, subnets: [{name: a, " +
			"role: node}]}}", "needs a subnet with the role control-plane"},
		{
			"AzureCluster", "{identityRef: {name: a}, networkSpec: {subnets: [{securityGroup: {securityRules: [{priority: 50}]}}]}}",
			"securityRules[0].priority: 50 is not between",
		},
		{
			"AzureCluster", "{identityRef: {name: a}, networkSpec: {apiServerLB: {type: Internal, frontendIPs: [{publicIP: {name: a}}]}}}",
			"frontendIPs[0].publicIP: an internal load balancer",
		},
		{"AzureCluster", "{identityRef: {name: a}, networkSpec: {privateDNSZoneName: a.b}}", "privateDNSZoneName: a private zone"},
		{"AzureClusterIdentity", "{type: ServicePrincipal}", "spec.clientSecret: an identity of the type ServicePrincipal needs a Secret"},
		{"AzureClusterIdentity", "{type: ManualServicePrincipal, clientSecret: {namespace: a}}", "needs a Secret"},
		{"AzureClusterIdentity", "{type: ServicePrincipal, clientSecret: {name: a}}", "clientSecret.namespace: the provider looks"},
		{"AzureClusterIdentity", "{type: ServicePrincipalCertificate}", "needs a Secret"},
		{"AzureClusterIdentity", "{type: WorkloadIdentity, resourceID: a}", "resourceID: only an identity of the type UserAssignedMSI"},
		{
			"AzureClusterIdentity", "{type: WorkloadIdentity, userAssignedIdentityCredentialsPath: a}",
			"userAssignedIdentityCredentialsPath: only an identity of the type UserAssignedIdentityCredential",
		},
		{"AzureMachineTemplate", "osDisk: {diskSizeGB: 4096, osType: Linux}", "osDisk.diskSizeGB: 4096 is not between 1 and 2048"},
		{"AzureMachineTemplate", "osDisk: {osType: Linux, managedDisk: {storageAccountType: Premium}}", "Azure has no disks of type Premium"},
		{
			"AzureMachineTemplate", "dataDisks: [{nameSuffix: a, lun: 0, diskSizeGB: 10}, {nameSuffix: b, lun: 0, diskSizeGB: 10}]",
			"dataDisks[1].lun: another disk",
		},
		{"AzureMachineTemplate", "identity: UserAssigned", "identity: identity UserAssigned and userAssignedIdentities go together"},
		{"AzureMachineTemplate", "sshPublicKey: ssh-ed25519 AAAA", "sshPublicKey: it is no public key in base64"},
		{
			"AzureMachineTemplate", "{subnetName: a, networkInterfaces: [{privateIPConfigs: 1}]}",
			"subnetName: each of networkInterfaces has its own",
		},
		{"AzureMachineTemplate", "roleAssignmentName: a", "roleAssignmentName: a template cannot have it"},
		{"AzureMachinePool", "template: {osDisk: {diskSizeGB: 10}}", "template.osDisk: a disk of the system needs osType"},
		{"AzureManagedControlPlane", "version: v1.36", `version: "v1.36" is no version`},
		{
			"AzureManagedControlPlane", "{virtualNetwork: {cidrBlock: 10.0.0.0/16, subnet: {cidrBlock: 10.1.0.0/24}}}",
			"virtualNetwork.subnet.cidrBlock: 10.1.0.0/24 is not within",
		},
		{"AzureManagedControlPlane", "networkDataplane: cilium", "networkDataplane: cilium needs the mode overlay"},
		{"AzureManagedControlPlane", "identity: {type: UserAssigned}", "identity.type: an identity of yours needs its id"},
		{
			"AzureManagedControlPlane", "securityProfile: {workloadIdentity: {enabled: true}}",
			"securityProfile.workloadIdentity: it needs the issuer",
		},
		{
			"AzureManagedControlPlane", "loadBalancerProfile: {managedOutboundIPs: 1, outboundIPs: [a]}",
			"loadBalancerProfile: managedOutboundIPs, outboundIPPrefixes",
		},
		{"AzureManagedControlPlane", "disableLocalAccounts: true", "disableLocalAccounts: without aadProfile"},
		{"AzureManagedMachinePool", "{mode: User, name: pool-1}", `spec.name: "pool-1" is no name of a pool`},
		{"AzureManagedMachinePool", "{mode: User, osType: Windows, name: windows}", "spec.name: the name of the pool has 7 characters"},
		{"AzureManagedMachinePool", "{mode: System, osType: Windows, name: win}", "osType: a pool of the mode System"},
		{"AzureManagedMachinePool", "{mode: User, maxPods: 5}", "maxPods: 5 is not between 10 and 250"},

		{
			"GCPMachineTemplate", "{confidentialCompute: Enabled, instanceType: n2d-standard-4}",
			"confidentialCompute: such a machine cannot move",
		},
		{
			"GCPMachineTemplate", "{confidentialCompute: Enabled, onHostMaintenance: Terminate, instanceType: n1-standard-4}",
			"instanceType: machines of the series n1",
		},
		{"GCPMachineTemplate", "rootDiskEncryptionKey: {keyType: Managed, suppliedKey: {rawKey: a}}", "rootDiskEncryptionKey.keyType"},
		{
			"GCPManagedCluster", "{region: europe-west3, network: {autoCreateSubnetworks: false, subnets: [{region: europe-west4}]}}",
			"network: autoCreateSubnetworks is false",
		},
		{
			"AzureASOManagedCluster", "resources: [{kind: ResourceGroup, spec: {location: westeurop}}]",
			`resources[0].spec.location: "westeurop" is no region of Azure`,
		},
		{
			"AzureASOManagedControlPlane", "resources: [" + asoCluster + "spec: {location: westeurope, tags: {azure-owner: a}}}]",
			`resources[0].spec.tags: the key "azure-owner" begins with a word that only Azure may use`,
		},
		{
			"AzureASOManagedMachinePool", "resources: [" + asoAgents + "spec: {tags: {'a/b': c}}}]",
			`resources[0].spec.tags: the key "a/b" has characters`,
		},
		{
			"GCPCluster", "{region: europe-west3, failureDomains: [europe-west3-a, europe-west4-a]}",
			`failureDomains[1]: "europe-west4-a" is no zone of the region europe-west3`,
		},
		{"GCPCluster", "{region: europe-west3, network: {subnets: [{region: europe-wset4}]}}", "network.subnets[0].region: "},
		{"GCPManagedControlPlane", "clusterName: " + long, "clusterName: it has 60 characters"},
		{"GCPManagedControlPlane", "enableAutopilot: true", "enableAutopilot: a cluster with Autopilot needs a release channel"},
		{"GCPManagedMachinePool", "scaling: {enableAutoscaling: false, minCount: 1}", "scaling.minCount: nothing scales"},
		{"GCPManagedMachinePool", "scaling: {minCount: 3, maxCount: 1}", "scaling.maxCount: 1 is less than minCount, 3"},

		{"AzureASOManagedControlPlane", "resources: []", "spec.resources: there is no ManagedCluster"},
		{
			"AzureASOManagedControlPlane", "resources: [{apiVersion: resources.azure.com/v1api20200601, kind: ManagedCluster}]",
			"spec.resources: there is no ManagedCluster",
		},
		{
			"AzureASOManagedControlPlane", "{version: v1.36.1, resources: [" + asoCluster + "spec: {kubernetesVersion: 1.36.0}}]}",
			"resources[0].spec.kubernetesVersion: 1.36.0 is not the version of the control plane, v1.36.1",
		},
		{
			"AzureASOManagedControlPlane", "resources: [" + asoCluster + "spec: {agentPoolProfiles: []}}]",
			"resources[0].spec.agentPoolProfiles: the provider takes the pools",
		},
		{"AzureASOManagedMachinePool", "resources: []", "spec.resources: there is no ManagedClustersAgentPool"},
		{
			"AzureASOManagedMachinePool", "resources: [" + asoAgents + "spec: {azureName: pool-1}}]",
			`resources[0].spec.azureName: "pool-1" is no name of a pool`,
		},
		{
			"AzureASOManagedMachinePool", "resources: [" + asoAgents + "spec: {vmSize: large}}]",
			`resources[0].spec.vmSize: "large" is no size of a machine`,
		},
		{"AzureManagedMachinePool", "{name: a, mode: User, scaling: {minSize: 3, maxSize: 1}}", "scaling.maxSize: 1 is less than minSize, 3"},
		{"AzureManagedMachinePool", "{name: a, mode: System, scaling: {minSize: 0}}", "scaling.minSize: a pool of the mode System"},
		{"AzureManagedMachinePool", "{name: a, mode: System, scaleSetPriority: Spot}", "scaleSetPriority: a pool of the mode System"},
		{
			"AzureManagedMachinePool", "{name: a, mode: User, availabilityZones: [westeurope-1]}",
			`availabilityZones[0]: "westeurope-1" is no zone`,
		},
		{"AzureManagedControlPlane", "subscriptionID: production", `subscriptionID: "production" is no id of a subscription`},
		{"AzureManagedControlPlane", "resourceGroupName: a.", `resourceGroupName: "a." is no name of a resource group`},
		{"AzureCluster", "{identityRef: {name: a}, resourceGroup: my group}", `resourceGroup: "my group" is no name of a resource group`},
		{
			"AzureCluster", "{identityRef: {name: a}, networkSpec: {subnets: [{securityGroup: {securityRules: [{direction: Inbound, priority: " +
				"200}, {direction: Outbound, priority: 200}, {direction: Inbound, priority: 200}]}}]}}",
			"securityRules[2].priority: another rule of this direction has 200, too",
		},
		{
			"AzureCluster", "{identityRef: {name: a}, networkSpec: {apiServerLB: {frontendIPs: [{publicIP: {name: a}}, {publicIP: {name: b}}]}}}",
			"frontendIPs: the load balancer of the API server has one public address",
		},
		{
			"AzureCluster", "{identityRef: {name: a}, networkSpec: {apiServerLB: {type: Internal, frontendIPs: [{name: a}]}}}",
			"frontendIPs: an internal load balancer of the API server has one private address",
		},
		{
			"AzureCluster", "{identityRef: {name: a}, networkSpec: {apiServerLB: {type: Public, frontendIPs: [{privateIP: 10.0.0.9}]}}}",
			"frontendIPs: a public load balancer has one public address",
		},
		{"AzureMachineTemplate", "spotVMOptions: {maxPrice: -2}", "spotVMOptions.maxPrice: -2 is no price"},
		{"AzureMachinePool", "template: {terminateNotificationTimeout: 30}", "terminateNotificationTimeout: 30 is not between 5 and 15"},
		{
			"AzureMachinePool", "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}",
			"strategy.rollingUpdate.maxUnavailable: it cannot be 0",
		},
		{"AzureMachinePool", "location: westeuropee", `location: "westeuropee" is no region`},

		{"GCPCluster", "project: My_Project", `project: "My_Project" is no id of a project`},
		{"GCPMachineTemplate", "rootDeviceType: ssd", `rootDeviceType: "ssd" is no type of a disk`},
		{
			"GCPMachineTemplate", "additionalDisks: [{deviceType: pd-blanced}]",
			`additionalDisks[0].deviceType: "pd-blanced" is no type of a disk`,
		},
		{"GCPManagedControlPlane", "clusterName: My_Cluster", `clusterName: "My_Cluster" is no name of a cluster`},
		{"GCPManagedControlPlane", "location: europewest3", `location: "europewest3" is neither a region of Google Cloud nor a zone`},
		{"GCPManagedControlPlane", "loggingService: logging.googleapis.com", "loggingService: "},
		{"GCPManagedControlPlane", "monitoringService: prometheus", "monitoringService: "},
		{
			"GCPManagedControlPlane", "clusterNetwork: {privateCluster: {controlPlaneCidrBlock: 172.16.0.0/24}}",
			"controlPlaneCidrBlock: Google Cloud takes a range of /28",
		},
		{"GCPManagedMachinePool", "nodePoolName: Pool_1", `nodePoolName: "Pool_1" is no name of a pool`},
		{"GCPCluster", "loadBalancer: {loadBalancerType: internal}", `loadBalancerType: the provider makes no load balancer of the type "int`},
		{"GCPManagedMachinePool", "kubernetesLabels: {team: a b}", `kubernetesLabels: the label team cannot have the value "a b"`},
		{"AzureManagedMachinePool", "{name: a, mode: User, nodeLabels: {a b: c}}", `nodeLabels: "a b" is no key of a label`},
		{"GCPManagedMachinePool", "diskSizeGb: 5", "diskSizeGb: 5 is less than 10"},

		{"VSphereMachineTemplate", `namingStrategy: {template: "{{ .machine.nam }}"}`, "namingStrategy.template: it is no template of a name"},
		{"VSphereMachineTemplate", `namingStrategy: {template: "{{ upper .machine.name }}"}`, "namingStrategy.template: it is no template"},
		{"VSphereMachineTemplate", `namingStrategy: {template: "{{ .machine.name }}_vm"}`, `a name such as "machine_vm"`},
		{"VSphereCluster", "controlPlaneEndpoint: {host: 192.0.2.1, port: 0}", "controlPlaneEndpoint.port: without a port"},

		{
			"OpenStackMachineTemplate", "additionalBlockDevices: [{name: a, storage: {type: volume}}]",
			`storage.type: "volume" is no type of a disk`,
		},
		{
			"OpenStackCluster", "{managedSubnets: [{}], managedSecurityGroups: {allNodesSecurityGroupRules: [{protocol: tcp, portRangeMin: 1, " +
				"portRangeMax: 70000}]}}", "portRangeMax: 70000 is more than 65535",
		},
		{"OpenStackCluster", "{network: {}, apiServerFixedIP: 10.7.0}", `apiServerFixedIP: "10.7.0" is no address`},
	} {
		refusedOnce(t, tc.kind, tc.spec, tc.want)
	}
}

// What other clouds take is not refused.
func TestNotRefusedByOtherClouds(t *testing.T) {
	for _, tc := range []struct{ kind, spec string }{
		// CAPZ's feature APIServerILB: the API server has a public and a private address.
		{
			"AzureCluster", "{identityRef: {name: a}, networkSpec: {apiServerLB: {type: Public, frontendIPs: " +
				"[{name: a, publicIP: {name: a}}, {name: b, privateIP: 10.0.0.100}]}}}",
		},
		{"AzureMachineTemplate", `spotVMOptions: {maxPrice: "-1"}`},
		{"AzureManagedMachinePool", "{name: a, mode: System, availabilityZones: [\"1\"], scaling: {minSize: 1, maxSize: 1}}"},
		{"AzureManagedMachinePool", `{name: a, mode: System, nodeLabels: {team: "${TEAM}"}}`},
		{"GCPManagedMachinePool", `kubernetesLabels: {team: "${TEAM}"}`},
		{
			"AzureCluster", "{identityRef: {name: a}, controlPlaneEnabled: false, networkSpec: {apiServerLB: {type: Internal, " +
				"frontendIPs: [{name: a}]}}}",
		},
		{"GCPMachineTemplate", "additionalDisks: [{deviceType: local-ssd, size: 100}]"}, // the provider gives it the size that such a disk has
		{"GCPManagedControlPlane", "location: us-central1-ai1a"},
		{"AzureASOManagedControlPlaneTemplate", "resources: []"},
		{"AzureASOManagedControlPlane", `resources: [{apiVersion: "${API}", kind: ManagedCluster}]`},
		{"AzureASOManagedControlPlane", "{version: v1.36.1, resources: [" + asoCluster + "spec: {kubernetesVersion: 1.36.1}}]}"},
		{"GCPCluster", "project: example.com:my-project"},
		{"GCPMachineTemplate", "{rootDeviceType: hyperdisk-balanced-high-availability, additionalDisks: [{deviceType: local-ssd}]}"},
		{"GCPManagedControlPlane", "{location: europe-west3-a, loggingService: none}"},
		{"GCPManagedControlPlaneTemplate", "location: set-by-patch"},
		{"VSphereMachineTemplate", `namingStrategy: {template: "{{ .machine.name | trunc 10 | trimSuffix \"-\" }}-vm"}`},
		{"VSphereMachineTemplate", `namingStrategy: {template: "{{ range 1000000000000 }}{{ end }}"}`}, // that would take too long
		{"OpenStackCluster", "{network: {}, apiServerFixedIP: api.example.com}"},
	} {
		t.Run(tc.kind+" "+tc.spec, func(t *testing.T) {
			if got := refusedOf(t, tc.kind, tc.spec); len(got) > 0 {
				t.Errorf("%q", got)
			}
		})
	}
}
