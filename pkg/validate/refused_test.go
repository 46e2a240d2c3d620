package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// refusedIn are the findings of all objects in a manifest.
func refusedIn(t *testing.T, manifest string) []string {
	t.Helper()
	var out []string
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(content) == 0 {
			continue
		}
		f := mapping.Fields(content)
		o := &object{Object: &render.Object{APIVersion: f.Text("apiVersion"), Kind: f.Text("kind"), Name: f.Text("metadata", "name")}}
		for _, finding := range checkRefused(o, content) {
			if finding.Rule != RuleRefused || finding.Hint == "" {
				t.Errorf("%+v", finding)
			}
			out = append(out, finding.Summary)
		}
	}
	return out
}

// What charts make is what providers take: none of the objects in the golden files is refused.
func TestNothingOfChartsIsRefused(t *testing.T) {
	files, err := filepath.Glob("../../templates/testdata/golden/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, refused := range refusedIn(t, strings.ReplaceAll(string(content), `name: "x"`, "name: shop")) { // Azure wants two characters
			t.Errorf("%s: %s", filepath.Base(file), refused)
		}
	}
}

// Each kind is judged as its provider's webhooks do: in each spec one thing is wrong, and the field is named.
func TestRefused(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, tc := range []struct{ kind, spec, want string }{
		{"AWSMachineTemplate", "rootVolume: {size: 80, type: io1}", "rootVolume.type: a volume of type io1 needs iops"},
		{"AWSMachineTemplate", "rootVolume: {size: 80, type: gp2, throughput: 200}", "rootVolume.throughput: only a volume of type gp3"},
		{"AWSMachineTemplate", "rootVolume: {size: 80, type: gp3, throughput: 20}", "20 is not between 125 and 2000"},
		{
			"AWSMachineTemplate", "nonRootVolumes: [{size: 80, type: gp3}]",
			"nonRootVolumes[0]: a volume that is not the root volume needs a deviceName",
		},
		{
			"AWSMachineTemplate", "nonRootVolumes: [{deviceName: /dev/sdb}, {deviceName: /dev/sdb}]",
			"nonRootVolumes[1].deviceName: another volume",
		},
		{
			"AWSMachineTemplate", "additionalSecurityGroups: [{id: sg-1, filters: [{name: a, values: [b]}]}]",
			"additionalSecurityGroups[0].filters: it names the same thing",
		},
		{"AWSMachineTemplate", "cloudInit: {secretPrefix: a}", "cloudInit.secretPrefix: a template cannot have it"},
		{"AWSMachineTemplate", "cloudInit: {secretCount: 2}", "cloudInit.secretCount: a template cannot have it"},
		{"AWSMachine", "cloudInit: {secretCount: 2}", "secretPrefix and secretCount go together"},
		{
			"AWSMachineTemplate", "cloudInit: {insecureSkipSecretsManager: true, secureSecretsBackend: secrets-manager}",
			"cloudInit.secureSecretsBackend: no backend",
		},
		{
			"AWSMachineTemplate", "{ignition: {version: \"3.4\"}, cloudInit: {insecureSkipSecretsManager: true}}",
			"cloudInit: a machine with ignition",
		},
		{"AWSMachineTemplate", "ignition: {version: \"2.3\", proxy: {httpProxy: a}}", "ignition.proxy: Ignition 2.3 does not know it"},
		{"AWSMachineTemplate", "providerID: aws:///a/b", "providerID: a template cannot have it"},
		{"AWSMachineTemplate", "hostID: h-1", "hostID: only a machine with tenancy host"},
		{"AWSMachineTemplate", "hostAffinity: host", "hostAffinity: only a machine"},
		{"AWSMachineTemplate", "{marketType: OnDemand, spotMarketOptions: {}}", "marketType: OnDemand and spotMarketOptions exclude each other"},
		{"AWSMachineTemplate", "marketType: CapacityBlock", "marketType: CapacityBlock needs the reservation's id"},
		{
			"AWSMachineTemplate", "elasticIpPool: {publicIpv4Pool: ipv4pool-ec2-1, publicIpv4PoolFallbackOrder: none}",
			"elasticIpPool: addresses of a pool",
		},
		{"AWSMachineTemplate", "sshKeyName: ' a'", "sshKeyName: the name of a key pair"},
		{"AWSMachineTemplate", "additionalTags: {'aws:a': b}", "begins with aws:"},
		{"AWSMachineTemplate", "additionalTags: {team: 'a,b'}", "additionalTags.team: the value has characters"},
		{"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/16, ipamPool: {id: a}}}", "network.vpc.cidrBlock: a pool of addresses"},
		{"AWSCluster", "network: {vpc: {ipamPool: {netmaskLength: 20}}}", "network.vpc.ipamPool: a pool is named by id or name"},
		{
			"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/16, secondaryCidrBlocks: [{ipv4CidrBlock: 10.0.0.0/16}]}}",
			"secondaryCidrBlocks[0].ipv4CidrBlock: 10.0.0.0/16 has addresses in common",
		},
		{"AWSCluster", "network: {vpc: {secondaryCidrBlocks: [{ipv4CidrBlock: none}]}}", `"none" is no network`},
		{
			"AWSCluster", "network: {vpc: {id: vpc-1}, subnets: [{zoneType: local-zone}]}",
			"network.subnets[0].zoneType: a subnet in a local-zone needs parentZoneName",
		},
		{"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/8}}", "network.vpc.cidrBlock: /8 is not between /16 and /28"},
		{"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/25}}", "network.vpc.cidrBlock: in a VPC of /25 the subnets of 3 zones are /29"},
		{
			"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/25, availabilityZoneUsageLimit: 6}}",
			"network.vpc.cidrBlock: in a VPC of /25 the subnets of 3 zones are /29",
		},
		{
			"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/28, availabilityZoneUsageLimit: 1}}",
			"network.vpc.cidrBlock: in a VPC of /28 the subnets of 1 zone are /29",
		},
		{
			"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/16, secondaryCidrBlocks: [{ipv4CidrBlock: 10.1.0.0/12}]}}",
			"secondaryCidrBlocks[0].ipv4CidrBlock: 10.1.0.0/12 has addresses in common",
		},
		{
			"AWSCluster", "network: {vpc: {cidrBlock: 192.168.0.0/16, secondaryCidrBlocks: [{ipv4CidrBlock: 10.1.0.0/12}]}}",
			"secondaryCidrBlocks[0].ipv4CidrBlock: /12 is not between /16 and /28",
		},
		{
			"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/16}, subnets: [{id: a, isPublic: true, cidrBlock: 10.1.0.0/24}]}",
			"network.subnets[0].cidrBlock: 10.1.0.0/24 is not within the ranges of the VPC",
		},
		{
			"AWSCluster", "network: {subnets: [{id: a, isPublic: true, cidrBlock: 10.1.0.0/30}]}",
			"network.subnets[0].cidrBlock: /30 is not between",
		},
		{
			"AWSCluster", "network: {vpc: {id: vpc-1}, subnets: [{id: a, cidrBlock: 10.1.0.0/24}, {id: b, cidrBlock: 10.1.0.128/25}]}",
			"network.subnets[1].cidrBlock: 10.1.0.128/25 has addresses in common with a subnet before it",
		},
		{"AWSCluster", "network: {vpc: {id: vpc-1}, subnets: [{id: a}, {id: a}]}", "network.subnets[1].id: another subnet has this id"},
		{
			"AWSCluster", "{region: eu-central-1, network: {vpc: {id: vpc-1}, subnets: [{id: a, availabilityZone: eu-west-1a}]}}",
			`network.subnets[0].availabilityZone: "eu-west-1a" is no zone of the region eu-central-1`,
		},
		{
			"AWSCluster", "controlPlaneLoadBalancer: {loadBalancerType: nlb, ingressRules: [{cidrBlocks: [300.0.0.0/8]}]}",
			`controlPlaneLoadBalancer.ingressRules[0].cidrBlocks[0]: "300.0.0.0/8" is no network`,
		},
		{
			"AWSManagedControlPlane",
			"{region: eu-central-1, network: {vpc: {id: vpc-1}, subnets: [{id: a, availabilityZone: eu-west-1a}, {id: b}]}}",
			`network.subnets[0].availabilityZone: "eu-west-1a" is no zone of the region eu-central-1`,
		},
		{"AWSCluster", "network: {vpc: {id: vpc-1}}", "network.subnets: an existing VPC needs its subnets named"},
		{"AWSManagedControlPlane", "network: {vpc: {id: vpc-1, tags: {a: b}}}", "network.subnets: an existing VPC needs its subnets named"},
		{
			"AWSCluster", "network: {subnets: [{id: subnet-1}, {id: subnet-2}]}",
			"network.subnets[0].id: subnet-1 is an existing subnet, and without network.vpc.id",
		},
		{
			"AWSManagedControlPlane", "network: {vpc: {cidrBlock: 10.0.0.0/16}, subnets: [{id: subnet-1}, {id: subnet-2}]}",
			"network.subnets[0].id: subnet-1 is an existing subnet, and without network.vpc.id",
		},
		{
			"AWSCluster", "network: {subnets: [{id: a, cidrBlock: 10.0.0.0/24}, {id: b, cidrBlock: 10.0.1.0/24, isPublic: false}]}",
			"network.subnets: none is public",
		},
		{
			"AWSCluster", "network: {subnets: [{id: a, cidrBlock: 10.0.0.0/24, isPublic: true, zoneType: local-zone, parentZoneName: b}]}",
			"network.subnets: none is public",
		},
		{"AWSCluster", "network: {subnets: [{id: a, isPublic: true}]}", "network.subnets[0]: the provider makes this subnet, and does not know"},
		{
			"AWSManagedControlPlane", "network: {vpc: {cidrBlock: 10.0.0.0/16, availabilityZoneUsageLimit: 1}}",
			"network.vpc.availabilityZoneUsageLimit: EKS needs subnets in two zones",
		},
		{"AWSManagedControlPlane", "network: {vpc: {id: vpc-1}, subnets: [{id: a}]}", "network.subnets: EKS needs subnets in two zones"},
		{
			"AWSManagedControlPlane", "network: {vpc: {id: vpc-1}, subnets: [{id: a, availabilityZone: b}, {id: c, availabilityZone: b}]}",
			"network.subnets: EKS needs subnets in two zones",
		},
		{"AWSMachineTemplate", "instanceType: large", `instanceType: "large" is no type of a machine in AWS`},
		{"AWSMachinePool", "awsLaunchTemplate: {instanceType: Standard_D4s_v5}", `awsLaunchTemplate.instanceType: "Standard_D4s_v5" is no type`},
		{"AWSManagedMachinePool", "instanceType: n2-standard-4", `instanceType: "n2-standard-4" is no type`},
		{"AWSCluster", "network: {nodePortIngressRuleCidrBlocks: [10.0.0.0]}", `nodePortIngressRuleCidrBlocks[0]: "10.0.0.0" is no network`},
		{
			"AWSCluster", "network: {additionalNodeIngressRules: [{cidrBlocks: [10.0.0.0/8], sourceSecurityGroupIds: [sg-1]}]}",
			"additionalNodeIngressRules[0]: a rule lets in",
		},
		{
			"AWSCluster", "controlPlaneLoadBalancer: {loadBalancerType: disabled, name: a}",
			"controlPlaneLoadBalancer.name: the load balancer is disabled",
		},
		{
			"AWSCluster", "controlPlaneLoadBalancer: {loadBalancerType: disabled, crossZoneLoadBalancing: true}",
			"controlPlaneLoadBalancer.crossZoneLoadBalancing: the load",
		},
		{
			"AWSCluster", "{controlPlaneLoadBalancer: {name: a}, secondaryControlPlaneLoadBalancer: {name: b, loadBalancerType: nlb}}",
			"secondaryControlPlaneLoadBalancer.scheme: both",
		},
		{
			"AWSCluster", "{controlPlaneLoadBalancer: {name: a}, secondaryControlPlaneLoadBalancer: {name: b, scheme: internal}}",
			"secondaryControlPlaneLoadBalancer.loadBalancerType",
		},
		{
			"AWSCluster", "secondaryControlPlaneLoadBalancer: {name: b, scheme: internal, loadBalancerType: nlb}",
			"a second load balancer needs a first one",
		},
		{"AWSCluster", "controlPlaneLoadBalancer: {targetGroupIPType: ipv4}", "targetGroupIPType: a classic load balancer"},
		{"AWSCluster", "bastion: {disableIngressRules: true, allowedCIDRBlocks: [10.0.0.0/8]}", "bastion.allowedCIDRBlocks: nobody"},
		{"AWSCluster", "s3Bucket: {presignedURLDuration: 1h}", "s3Bucket: a bucket needs a name"},
		{
			"AWSClusterTemplate", "controlPlaneLoadBalancer: {loadBalancerType: disabled, name: a}",
			"spec.template.spec.controlPlaneLoadBalancer.name",
		},
		{"AWSClusterRoleIdentity", "roleARN: a", "spec: a role needs an identity"},
		{"AWSMachinePool", "awsLaunchTemplate: {rootVolume: {type: io2}}", "awsLaunchTemplate.rootVolume.type"},
		{
			"AWSMachinePool", "{awsLaunchTemplate: {spotMarketOptions: {}}, mixedInstancesPolicy: {}}",
			"spotMarketOptions: it cannot be set together",
		},
		{"AWSMachinePool", "refreshPreferences: {maxHealthyPercentage: 200}", "it needs minHealthyPercentage"},
		{"AWSMachinePool", "subnets: [{id: a, filters: []}, {id: a, filters: [{name: b}]}]", "subnets[1].filters"},
		{"AWSMachinePool", "lifecycleHooks: [{name: a, roleARN: b}]", "lifecycleHooks[0].roleARN: it needs notificationTargetARN"},
		{"AWSManagedMachinePool", "scaling: {minSize: 3, maxSize: 1}", "scaling.maxSize: 1 is less than minSize, 3"},
		{
			"AWSManagedMachinePool", "updateConfig: {maxUnavailable: 1, maxUnavailablePercentage: 10}",
			"updateConfig.maxUnavailable: it cannot be set",
		},
		{"AWSManagedMachinePool", "remoteAccess: {public: true, sourceSecurityGroups: [a]}", "remoteAccess.sourceSecurityGroups"},
		{
			"AWSManagedMachinePool", "{instanceType: t3.large, awsLaunchTemplate: {name: a}}",
			"instanceType: it cannot be set together with awsLaunchTemplate",
		},
		{"AWSManagedControlPlane", "secondaryCidrBlock: 10.1.0.0/16", "secondaryCidrBlock: 10.1.0.0/16 is not within 100.64.0.0/10"},
		{"AWSManagedControlPlane", "secondaryCidrBlock: 100.64.0.0/10", "secondaryCidrBlock: /10 is not between /16 and /28"},
		{"AWSManagedControlPlane", "{vpcCni: {disable: true}, addons: [{name: vpc-cni}]}", "vpcCni.disable: the addon vpc-cni"},
		{"AWSManagedControlPlane", "accessEntries: [{principalARN: a}]", "accessEntries: they are for"},
		{
			"AWSManagedControlPlane", "{accessConfig: {authenticationMode: api}, accessEntries: [{type: ec2_linux, kubernetesGroups: [a]}]}",
			"accessEntries[0].kubernetesGroups",
		},
		{"AWSManagedControlPlane", "version: latest", `version: "latest" is no version`},

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
		{"VSphereFailureDomain", "{zone: {type: HostGroup}, topology: {computeCluster: a}}", "zone.type: a group of hosts needs topology.hosts"},
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

		{"GCPMachineTemplate", "{confidentialCompute: Enabled, instanceType: n2d-standard-4}", "confidentialCompute: such a machine cannot move"},
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
			"AzureASOManagedControlPlane", "resources: [{kind: ManagedCluster, spec: {location: westeurope, tags: {azure-owner: a}}}]",
			`resources[0].spec.tags: the key "azure-owner" begins with a word that only Azure may use`,
		},
		{"AzureASOManagedMachinePool", "resources: [{spec: {tags: {'a/b': c}}}]", `resources[0].spec.tags: the key "a/b" has characters`},
		{
			"AWSManagedControlPlane", "{accessConfig: {authenticationMode: api}, accessEntries: [" +
				"{principalARN: 'arn:aws:iam::111122223333:role/a'}, " +
				"{principalARN: 'arn:aws:iam::111122223333:role/b'}, {principalARN: 'arn:aws:iam::111122223333:role/a'}]}",
			"accessEntries[2].principalARN: another entry is of the same principal",
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
	} {
		t.Run(tc.kind+" "+tc.want, func(t *testing.T) {
			if got := refusedOf(t, tc.kind, tc.spec); len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// What a cloud takes is not refused, at the edges of what it takes.
func TestNotRefused(t *testing.T) {
	for _, tc := range []struct{ kind, spec string }{
		{"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/24}}"},
		{"AWSCluster", "{region: us-west-1, network: {vpc: {cidrBlock: 10.0.0.0/25}}}"}, // where accounts see two zones
		{"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/27, availabilityZoneUsageLimit: 1}}"},
		{"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/28}, subnets: [{id: a, cidrBlock: 10.0.0.0/28, isPublic: true}]}"},
		{"AWSCluster", "network: {vpc: {id: vpc-1, cidrBlock: 10.0.0.0/16}, subnets: [{id: subnet-1, cidrBlock: 10.1.0.0/24}]}"},
		{
			"AWSCluster", "network: {vpc: {cidrBlock: 10.0.0.0/16, secondaryCidrBlocks: [{ipv4CidrBlock: 10.1.0.0/16}]}, subnets: " +
				"[{id: a, cidrBlock: 10.1.0.0/24}, {id: b, cidrBlock: 10.0.0.0/24, isPublic: true}]}",
		},
		{
			"AWSManagedControlPlane", "{secondaryCidrBlock: 100.64.0.0/16, network: {vpc: {cidrBlock: 10.0.0.0/16}, subnets: " +
				"[{id: a, cidrBlock: 100.64.1.0/24}, {id: b, cidrBlock: 10.0.0.0/24, isPublic: true}]}}",
		},
		{"AWSManagedControlPlane", "network: {vpc: {id: vpc-1, availabilityZoneUsageLimit: 1}, subnets: [{id: a}, {id: b}]}"},
		{"AWSCluster", "network: {vpc: {id: vpc-1, tags: {sigs.k8s.io/cluster-api-provider-aws/cluster/c: owned}}}"}, // the provider's own
		{"AWSClusterTemplate", "network: {vpc: {id: vpc-1}}"},                                                        // a patch may name them
		{"AWSClusterTemplate", "network: {subnets: [{id: subnet-1}]}"},
		{"AWSCluster", "network: {vpc: {id: \"${VPC}\"}, subnets: [{id: subnet-1}]}"},
		{"AWSCluster", "network: {subnets: [{id: a, isIpv6: true, isPublic: \"${PUBLIC}\"}, {id: b, cidrBlock: \"${RANGE}\"}]}"},
		{"AWSCluster", "{region: us-west-2, network: {vpc: {id: vpc-1}, subnets: [{id: a, availabilityZone: us-west-2-lax-1a}]}}"},
		{
			"AWSCluster", `{region: "${REGION}", network: {vpc: {cidrBlock: "${RANGE}"}, subnets: ` +
				`[{id: a, availabilityZone: eu-west-1a, cidrBlock: "${A}", isPublic: true}]}}`,
		},
		{"AWSMachineTemplate", "instanceType: m7i-flex.large"},
		{"AWSMachineTemplate", "instanceType: u-6tb1.metal"},
		{"AWSMachineTemplate", "instanceType: c7gd.metal-48xl"},
		{"AWSMachineTemplate", `instanceType: "${SIZE}"`},
	} {
		t.Run(tc.kind+" "+tc.spec, func(t *testing.T) {
			if got := refusedOf(t, tc.kind, tc.spec); len(got) > 0 {
				t.Errorf("%q", got)
			}
		})
	}
}

// refusedOf are the findings of an object of a kind that has a spec, or makes what has it.
func refusedOf(t *testing.T, kind, text string) []string {
	t.Helper()
	version, spec := "infrastructure.cluster.x-k8s.io/v1beta2", map[string]any{}
	if strings.HasSuffix(kind, "ControlPlane") {
		version = "controlplane.cluster.x-k8s.io/v1beta2"
	}
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(kind, "Template") {
		spec = map[string]any{"template": map[string]any{"spec": spec}}
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "shop"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return refusedIn(t, string(manifest))
}

// A name that cannot begin the names of machines in Azure, and an object of the same kind that is another provider's.
func TestRefusedNames(t *testing.T) {
	const azure = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AzureCluster\nmetadata: {name: NAME}\nspec: {identityRef: " +
		"{kind: AzureClusterIdentity, name: a}}\n"
	for name, bad := range map[string]bool{"shop": false, strings.Repeat("a", 45): true, "a.b": true} {
		if got := refusedIn(t, strings.Replace(azure, "NAME", name, 1)); len(got) > 0 != bad {
			t.Errorf("%s: %q", name, got)
		}
	}
	supervisor := "apiVersion: vmware.infrastructure.cluster.x-k8s.io/v1beta1\nkind: VSphereMachineTemplate\nmetadata: {name: a}\nspec: " +
		"{template: {spec: {providerID: a}}}\n"
	if got := refusedIn(t, supervisor); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
