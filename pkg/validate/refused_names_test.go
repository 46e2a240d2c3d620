package validate

import (
	"strings"
	"testing"
)

// What AWS, Azure and Google Cloud refuse, or never make sound, long after the API server and a provider's webhooks took it; "" is what
// they take.
func TestRefusedByClouds(t *testing.T) {
	plane := "AWSManagedControlPlane"
	for _, tc := range []struct{ kind, spec, want string }{
		// Names of AWS's IAM.
		{"AWSMachineTemplate", `iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io`, ""},
		{"AWSMachineTemplate", `iamInstanceProfile: has space`, "no name of an instance profile"},
		{"AWSMachineTemplate", `iamInstanceProfile: path/nodes`, "no name of an instance profile"},
		{"AWSMachineTemplate", `iamInstanceProfile: "arn:aws:iam::111122223333:instance-profile/x"`, "it is an ARN"},
		{"AWSMachineTemplate", `iamInstanceProfile: ` + strings.Repeat("a", 129), "no name of an instance profile"},
		{"AWSMachineTemplate", `iamInstanceProfile: "${profile}"`, ""},
		{"AWSMachinePool", `awsLaunchTemplate: {iamInstanceProfile: a b}`, "no name of an instance profile"},
		{plane, `roleName: eks-control-plane`, ""},
		{plane, `roleName: "arn:aws:iam::111122223333:role/x"`, "it is an ARN"},
		{"AWSManagedMachinePool", `roleName: ` + strings.Repeat("a", 65), "no name of a role"},
		{"AWSFargateProfile", `roleName: a/b`, "no name of a role"},
		// Keys of AWS's KMS.
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: "arn:aws:kms:eu-central-1:111122223333:key/1"}`, ""},
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: alias/disks}`, ""},
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: "arn:aws:kms:eu-central-1:1111:key/1"}`, "no ARN of a key"},
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: "arn:aws:s3:::bucket"}`, "no ARN of a key"},
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: "arn:aws:kms:cn-north-1:111122223333:key/1"}`, "begins with arn:aws-cn:"},
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: "arn:aws-cn:kms:cn-north-1:111122223333:key/1"}`, ""},
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: "arn:aws-cn:kms:eu-central-1:111122223333:key/1"}`, "begins with arn:aws:"},
		{"AWSMachineTemplate", `rootVolume: {size: 8, encryptionKey: "arn:aws-iso:kms:us-iso-east-1:111122223333:key/1"}`, ""},
		{plane, `{region: eu-central-1, encryptionConfig: {provider: "arn:aws:kms:eu-central-1:111122223333:alias/x"}}`, ""},
		{plane, `{region: us-east-1, encryptionConfig: {provider: "arn:aws:kms:eu-central-1:111122223333:key/1"}}`, "takes only a key of the region"},
		// Who is let in.
		{"AWSCluster", `controlPlaneLoadBalancer: {ingressRules: [{cidrBlocks: [10.0.0.0/8, 192.0.2.7/32]}]}`, ""},
		{"AWSCluster", `controlPlaneLoadBalancer: {ingressRules: [{cidrBlocks: [10.0.0.1/8]}]}`, "AWS makes 10.0.0.0/8 of 10.0.0.1/8"},
		{"AWSCluster", `controlPlaneLoadBalancer: {ingressRules: [{cidrBlocks: [10.0.0.0/8, 10.0.0.0/8]}]}`, "each network once"},
		{"AWSCluster", `network: {additionalNodeIngressRules: [{ipv6CidrBlocks: ["2001:db8::1/32"]}]}`, "AWS makes 2001:db8::/32"},
		{"AWSCluster", `bastion: {allowedCIDRBlocks: [10.1.2.3/16]}`, "AWS makes 10.1.0.0/16"},
		{"AWSCluster", `network: {nodePortIngressRuleCidrBlocks: [10.1.2.3/16]}`, "AWS makes 10.1.0.0/16"},
		{plane, `endpointAccess: {publicCIDRs: [203.0.113.0/24, 0.0.0.0/0]}`, ""},
		{plane, `endpointAccess: {publicCIDRs: [203.0.113.0/24, 10.0.0.0/8]}`, "endpointAccess.publicCIDRs[1]: 10.0.0.0/8 is not public"},
		{plane, `endpointAccess: {publicCIDRs: [everybody]}`, "no network"},
		// Addons and labels of EKS.
		{plane, `addons: [{name: vpc-cni, version: v1.20.0-eksbuild.1, configuration: '{"env":{"A":"b"}}'}, {name: coredns, version: a}]`, ""},
		{plane, `addons: [{name: vpc-cni, version: a, configuration: "env: {A: b}"}]`, ""},
		{plane, `addons: [{name: vpc-cni, version: a, configuration: "{bad"}]`, "addons[0].configuration"},
		{plane, `addons: [{name: vpc-cni, version: a, configuration: word}]`, "addons[0].configuration"},
		{plane, `addons: [{name: vpc-cni, version: a}, {name: vpc-cni, version: b}]`, "addons[1].name"},
		{"AWSManagedMachinePool", `labels: {example.com/team: a, role: general}`, ""},
		{"AWSManagedMachinePool", `labels: {eks.amazonaws.com/x: a}`, "EKS keeps for itself"},
		// Taints that no kubelet starts with.
		{"AWSManagedMachinePool", `taints: [{key: a, value: b, effect: no-schedule}, {key: a, value: c, effect: no-execute}]`, ""},
		{"AWSManagedMachinePool", `taints: [{key: a, value: b, effect: no-schedule}, {key: a, value: c, effect: no-schedule}]`, "taints[1].key"},
		{"AzureManagedMachinePool", `taints: [{key: a, value: b, effect: NoSchedule}, {key: a, value: c, effect: NoSchedule}]`, "taints[1].key"},
		{"GCPManagedMachinePool", `kubernetesTaints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]`, "kubernetesTaints[1].key"},
		// Azure.
		{"AzureMachineTemplate", `vmSize: Standard_D4s_v5`, ""},
		{"AzureMachineTemplate", `vmSize: m7i.large`, "no size of a machine in Azure"},
		{"AzureMachinePool", `template: {vmSize: "e2-standard-4"}`, "no size of a machine in Azure"},
		{"AzureManagedMachinePool", `sku: m7i.large`, "no size of a machine in Azure"},
		{"AzureManagedMachinePool", `sku: "${size}"`, ""},
		{"AzureMachineTemplate", `additionalTags: {cost-center: "42", example.com_team: a}`, ""},
		{"AzureMachineTemplate", `additionalTags: {example.com/team: a}`, "characters that Azure does not take"},
		{"AzureManagedControlPlane", `additionalTags: {Azure-x: a}`, "only Azure may use"},
		{"AzureManagedMachinePool", `additionalTags: {x: ` + strings.Repeat("a", 257) + `}`, "257 characters"},
		// Google Cloud.
		{"GCPMachineTemplate", `instanceType: e2-standard-4`, ""},
		{"GCPMachineTemplate", `instanceType: n2-custom-4-8192-ext`, ""},
		{"GCPMachineTemplate", `instanceType: zones/europe-west3-a/machineTypes/e2-standard-4`, ""},
		{"GCPMachineTemplate", `instanceType: m7i.large`, "no type of a machine in Google Cloud"},
		{"GCPManagedMachinePool", `machineType: Standard_D4s_v5`, "no type of a machine in Google Cloud"},
		{"GCPMachineTemplate", `{instanceType: c4-standard-4, rootDeviceType: pd-ssd}`, "hyperdisks alone"},
		{"GCPMachineTemplate", `instanceType: n4-standard-4`, "the type of the disk is pd-standard"},
		{"GCPMachineTemplate", `{instanceType: c4-standard-4, rootDeviceType: hyperdisk-balanced}`, ""},
		{"GCPManagedControlPlane", `{region: europe-west3, location: europe-west3-a}`, ""},
		{"GCPManagedControlPlane", `{region: europe-west3, location: europe-west3}`, ""},
		{"GCPManagedControlPlane", `{region: europe-west3, location: us-east1-a}`, "neither the region europe-west3"},
	} {
		requireRefused(t, tc.kind, tc.spec, tc.want)
	}
}

// What Azure refuses of subnets and of the address of an API server.
func TestRefusedSubnetsOfAzure(t *testing.T) {
	for _, tc := range []struct{ network, want string }{
		{`{name: a, role: node, cidrBlocks: [10.0.16.0/20]}`, ""},
		{`{name: a, role: node, cidrBlocks: [10.0.0.128/25]}`, "addresses in common with a subnet before it"},
		{`{name: a, role: node, cidrBlocks: [10.0.16.0/30]}`, "no subnet smaller than /29"},
		{`{name: a, role: node, cidrBlocks: [10.0.16.0/20, "2001:db8::/56"]}`, "a subnet of IPv6 is /64"},
		{`{name: a, role: node, cidrBlocks: [10.0.16.0/20, "2001:db8::/64"]}`, ""},
	} {
		requireRefused(t, "AzureCluster", `{identityRef: {kind: AzureClusterIdentity, name: a}, networkSpec: {subnets: [
			{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/24]}, `+tc.network+`]}}`, tc.want)
	}
	requireRefused(t, "AzureCluster", `{identityRef: {kind: AzureClusterIdentity, name: a}, networkSpec: {vnet: {cidrBlocks: [10.0.0.0/16]},
		subnets: [{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/15]}]}}`, "is not within the network's own ranges")
	for ip, want := range map[string]string{
		"10.0.0.4": "", "10.0.0.254": "", "10.0.0.0": "Azure keeps", "10.0.0.3": "Azure keeps", "10.0.0.255": "Azure keeps", "10.0.1.4": "is not in",
	} {
		requireRefused(t, "AzureCluster", `{identityRef: {kind: AzureClusterIdentity, name: a}, networkSpec: {
			apiServerLB: {type: Internal, frontendIPs: [{name: a, privateIP: `+ip+`}]},
			subnets: [{name: cp, role: control-plane, cidrBlocks: [10.0.0.0/24]}]}}`, want)
	}
}

// requireRefused requires one finding with the words of want, or none at all where it is "".
func requireRefused(t *testing.T, kind, spec, want string) {
	t.Helper()
	got := refusedOf(t, kind, spec)
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("%s %s: %q", kind, spec, got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("%s %s: %q, want %q", kind, spec, got, want)
	}
}
