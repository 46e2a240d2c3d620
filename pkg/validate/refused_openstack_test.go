package validate

import (
	"fmt"
	"strings"
	"testing"
)

// What the webhooks and the controllers of CAPO refuse, and what the services of OpenStack refuse of what CAPO asks them; "" is what they
// take.
func TestRefusedOpenStack(t *testing.T) {
	const network = "managedSubnets: [{cidr: 10.6.0.0/24}]"
	rule := func(field, rule string) string {
		return "{" + network + ", managedSecurityGroups: {" + field + ": [" + rule + "]}}"
	}
	for _, tc := range []struct{ kind, spec, want string }{
		{"OpenStackMachineTemplate", "{flavor: m1.large, image: {filter: {name: a}}, tags: [a, b c], rootVolume: {sizeGiB: 50}}", ""},
		{"OpenStackMachineTemplate", "{providerID: 'openstack:///a'}", "providerID: a template cannot have it"},
		{"OpenStackMachine", "{providerID: 'openstack:///a'}", ""},
		{"OpenStackMachine", "additionalBlockDevices: [{name: root, sizeGiB: 5, storage: {type: Local}}]", "additionalBlockDevices[0].name"},
		{"OpenStackServer", "additionalBlockDevices: [{name: a/b}]", "Nova does not take"},
		{"OpenStackServer", "additionalBlockDevices: [{name: etcd}]", ""},
		{"OpenStackMachineTemplate", "ports: [{disablePortSecurity: true, securityGroups: [{id: a}]}]", "ports[0].securityGroups"},
		{"OpenStackMachineTemplate", "ports: [{enablePortSecurity: false, securityGroups: [{id: a}]}]", "ports[0].securityGroups"},
		{"OpenStackMachineTemplate", "ports: [{disablePortSecurity: false, securityGroups: [{id: a}]}, {disablePortSecurity: true}]", ""},
		{"OpenStackMachine", "ports: [{fixedIPs: [{ipAddress: 10.0.0.5}]}]", "ports[0].fixedIPs: nothing says in which network"},
		{"OpenStackMachine", "ports: [{fixedIPs: [{ipAddress: 10.0.0.5}], network: {id: a}}]", ""},
		{"OpenStackMachine", "ports: [{fixedIPs: [{ipAddress: 10.0.0.5}, {subnet: {id: a}}]}]", ""},
		{"OpenStackMachine", "ports: [{network: {id: a}, fixedIPs: [{ipAddress: 10.0.0.500}]}]", "fixedIPs[0].ipAddress"},
		{
			"OpenStackMachine", "ports: [{allowedAddressPairs: [{ipAddress: 10.0.0.0/8}, {ipAddress: 10.0.0.7}, {ipAddress: vip}]}]",
			"Pairs[2].ipAddress",
		},
		{"OpenStackMachine", "tags: ['a,b']", "tags[0]: Nova does not take"},
		{"OpenStackMachine", "tags: ['${tag}/a']", ""},
		{"OpenStackCluster", "{" + network + ", tags: [" + strings.Repeat("a", 61) + "]}", "tags[0]: Nova does not take"},
		{"OpenStackCluster", "{" + network + ", tags: [" + numbered("t%d", 51) + "]}", "there are 51 tags"},
		{"OpenStackCluster", "{" + network + ", tags: [" + numbered("t%d", 50) + "]}", ""},
		{"OpenStackCluster", "{}", "nothing says in which network the machines are"},
		{"OpenStackClusterTemplate", "{}", ""},
		{"OpenStackCluster", "network: {id: a}", ""},
		{"OpenStackCluster", "subnets: [{id: a}]", ""},
		{"OpenStackCluster", "managedSubnets: [{cidr: 'fd00::/64'}]", "subnets of IPv4 only"},
		{"OpenStackCluster", "managedSubnets: [{cidr: 10.6.0.0/24, dnsNameservers: [8.8.8.8, dns]}]", "dnsNameservers[1]"},
		{
			"OpenStackCluster", "managedSubnets: [{cidr: 10.6.0.0/24, dnsNameservers: ['2001:4860:4860::8888']}]",
			"dnsNameservers[0]: a subnet of IPv4",
		},
		{
			"OpenStackCluster", "managedSubnets: [{cidr: 10.6.0.0/24, allocationPools: [{start: 10.6.0.10, end: 10.6.1.10}]}]",
			"allocationPools[0].end",
		},
		{
			"OpenStackCluster", "managedSubnets: [{cidr: 10.6.0.0/24, allocationPools: [{start: 10.5.0.10, end: 10.6.0.10}]}]",
			"allocationPools[0].start",
		},
		{"OpenStackCluster", "managedSubnets: [{cidr: 10.6.0.0/24, allocationPools: [{start: 10.6.0.20, end: 10.6.0.10}]}]", "before start"},
		{
			"OpenStackCluster", "managedSubnets: [{cidr: 10.6.0.0/24, allocationPools: [{start: 10.6.0.10, end: 10.6.0.20}, " +
				"{start: 10.6.0.20, end: 10.6.0.30}]}]", "allocationPools[1].start: the pool has",
		},
		{
			"OpenStackCluster", "managedSubnets: [{cidr: 10.6.0.0/24, allocationPools: [{start: 10.6.0.10, end: 10.6.0.19}, " +
				"{start: 10.6.0.20, end: 10.6.0.20}]}]", "",
		},
		{"OpenStackCluster", "{" + network + ", apiServerFloatingIP: shop.example.com}", "apiServerFloatingIP"},
		{
			"OpenStackCluster", "{" + network + ", apiServerLoadBalancer: {allowedCIDRs: [203.0.113.0/24, 203.0.113.7, office]}}",
			"allowedCIDRs[2]",
		},
		{"OpenStackCluster", "{" + network + ", apiServerLoadBalancer: {allowedCIDRs: ['2001:db8::/32']}}", "knows only IPv4"},
		{"OpenStackCluster", "{" + network + ", bastion: {floatingIP: a}}", "bastion.floatingIP"},
		{"OpenStackCluster", "{" + network + ", bastion: {spec: {tags: ['a/b']}}}", "bastion.spec.tags[0]"},
		{
			"OpenStackCluster", rule("allNodesSecurityGroupRules", "{remoteManagedGroups: [worker], remoteIPPrefix: 10.0.0.0/8}"),
			"allNodesSecurityGroupRules[0].remoteIPPrefix: it cannot be set together with remoteManagedGroups",
		},
		{"OpenStackCluster", rule("workerNodesSecurityGroupRules", "{remoteGroupID: a, remoteIPPrefix: 10.0.0.0/8}"), "with remoteGroupID"},
		{"OpenStackCluster", rule("controlPlaneNodesSecurityGroupRules", "{remoteManagedGroups: [bastion]}"), "has no bastion"},
		{"OpenStackCluster", rule("clusterNodesSecurityGroupRules", "{remoteIPPrefix: all}"), "remoteIPPrefix"},
		{"OpenStackCluster", rule("allNodesSecurityGroupRules", "{etherType: IPv6, remoteIPPrefix: 10.0.0.0/8}"), "no network of IPv6"},
		{"OpenStackCluster", rule("allNodesSecurityGroupRules", "{portRangeMin: 80, portRangeMax: 80}"), "ports need a protocol"},
		{"OpenStackCluster", rule("allNodesSecurityGroupRules", "{protocol: tcp, portRangeMin: 80}"), "needs portRangeMax"},
		{"OpenStackCluster", rule("allNodesSecurityGroupRules", "{protocol: udp, portRangeMin: 0, portRangeMax: 9}"), "needs portRangeMin"},
		{"OpenStackCluster", rule("allNodesSecurityGroupRules", "{protocol: tcp, portRangeMin: 81, portRangeMax: 80}"), "81"},
		{"OpenStackCluster", rule("allNodesSecurityGroupRules", "{protocol: icmp, portRangeMin: 8}"), ""},
		{
			"OpenStackCluster", rule("allNodesSecurityGroupRules", "{protocol: tcp, portRangeMin: 80, portRangeMax: 80, "+
				"remoteManagedGroups: [controlplane, worker]}"), "",
		},
	} {
		got := refusedOf(t, tc.kind, tc.spec)
		switch {
		case tc.want == "" && len(got) > 0:
			t.Errorf("%s %s: %q", tc.kind, tc.spec, got)
		case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
			t.Errorf("%s %s: %q, want %q", tc.kind, tc.spec, got, tc.want)
		}
	}
}

// AWS takes 50 tags of a resource, and those that the provider adds are among them.
func TestRefusedTagsOfAWS(t *testing.T) {
	tags := func(n int, more ...string) string {
		return "{" + strings.Join(append([]string{numbered("t%d: a", n)}, more...), ", ") + "}"
	}
	for _, tc := range []struct{ kind, spec, want string }{
		{"AWSMachineTemplate", "additionalTags: " + tags(45), ""},
		{"AWSMachineTemplate", "additionalTags: " + tags(46), "there are 46 tags, and AWS takes 50 with the 5 that the provider adds"},
		{"AWSMachineTemplate", "additionalTags: " + tags(45, "Name: a"), ""}, // it takes the place of the provider's
		{"AWSMachineTemplate", "additionalTags: " + tags(45, "kubernetes.io/cluster/shop: owned"), ""},
		{"AWSMachineTemplate", "additionalTags: " + tags(51), "there are 51 tags, and AWS takes 50 with the 5"},
		{
			"AWSMachineTemplate", "{additionalTags: " + tags(40) + ", tenancy: host, hostAffinity: host, dynamicHostAllocation: {tags: {a: b}}}",
			"",
		},
		{
			"AWSMachineTemplate", "{additionalTags: " + tags(40) + ", tenancy: host, hostAffinity: host, dynamicHostAllocation: {tags: {" +
				numbered("h%d: a", 11) + "}}}", "dynamicHostAllocation.tags: there are 11 tags, and AWS takes 50 with the 40 of additionalTags",
		},
		{"AWSCluster", "additionalTags: " + tags(45), ""},
		{"AWSCluster", "additionalTags: " + tags(46), "46 tags"},
		{
			"AWSCluster", "{additionalTags: " + tags(40) + ", network: {subnets: [{id: a, isPublic: true, cidrBlock: 10.0.0.0/24, tags: {" +
				numbered("s%d: a", 6) + "}}], vpc: {cidrBlock: 10.0.0.0/16}}}",
			"network.subnets[0].tags: there are 6 tags, and AWS takes 50 with the 40 of additionalTags and the 5 that the provider adds",
		},
		{
			"AWSCluster", "{additionalTags: " + tags(40) + ", network: {subnets: [{id: a, isPublic: true, cidrBlock: 10.0.0.0/24, tags: {" +
				numbered("t%d: a", 6) + "}}], vpc: {cidrBlock: 10.0.0.0/16}}}", "",
		},
		{"AWSMachinePool", "additionalTags: " + tags(44), ""},
		{"AWSMachinePool", "additionalTags: " + tags(45), "the 6 that the provider adds"},
		{"AWSManagedMachinePool", "additionalTags: " + tags(49), ""},
		{"AWSManagedMachinePool", "additionalTags: " + tags(50), "the 1 that the provider adds"},
		{"AWSManagedMachinePool", "{awsLaunchTemplate: {}, additionalTags: " + tags(49) + "}", "the 6 that the provider adds"},
		{"AWSFargateProfile", "additionalTags: " + tags(50), "the 1 that the provider adds"},
		{"AWSManagedControlPlane", "additionalTags: " + tags(45), ""},
		{"AWSManagedControlPlane", "additionalTags: " + tags(46), "the 5 that the provider adds"},
		{"AWSManagedControlPlane", "{additionalTags: " + tags(46) + ", network: {vpc: {id: vpc-a}, subnets: [{id: a}, {id: b}]}}", ""},
	} {
		got := refusedOf(t, tc.kind, tc.spec)
		switch {
		case tc.want == "" && len(got) > 0:
			t.Errorf("%s %.60s: %q", tc.kind, tc.spec, got)
		case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
			t.Errorf("%s %.60s: %q, want %q", tc.kind, tc.spec, got, tc.want)
		}
	}
}

// numbered is a list in YAML's flow style of n texts that a format makes of numbers.
func numbered(format string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ", ")
}
