package validate

import "testing"

// What AWS refuses, as its webhooks do. In each spec one thing is wrong, and the field is named.
func TestRefusedByAWS(t *testing.T) {
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
			"AWSManagedControlPlane", "{accessConfig: {authenticationMode: api}, accessEntries: [" +
				"{principalARN: 'arn:aws:iam::111122223333:role/a'}, " +
				"{principalARN: 'arn:aws:iam::111122223333:role/b'}, {principalARN: 'arn:aws:iam::111122223333:role/a'}]}",
			"accessEntries[2].principalARN: another entry is of the same principal",
		},
	} {
		refusedOnce(t, tc.kind, tc.spec, tc.want)
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
