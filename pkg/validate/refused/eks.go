package refused

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// secondaryRanges are the address ranges that may contain the second range of an EKS cluster's VPC.
var secondaryRanges = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.19.0.0/16")}

func eksControlPlane(p part) {
	awsTags(p, eksTags(p))
	awsSubnetTags(p)
	awsRegion(p, "region")
	awsBastion(p.in("bastion"))
	eksVersion(p)
	eksNetwork(p)
	eksAccess(p)
	eksAddons(p)
	eksSixAddons(p)
	eksMappings(p.in("iamAuthenticatorConfig"))
	eksPublic(p.in("endpointAccess"))
	awsIAM(p, "roleName", "a role", awsLongestRole)
	awsKey(p.in("encryptionConfig"), "provider", p.word("region"))
	for _, switched := range []struct{ field, addon string }{{"kubeProxy", "kube-proxy"}, {"vpcCni", "vpc-cni"}} {
		named := slices.ContainsFunc(p.each("addons"), func(addon part) bool { return addon.word("name") == switched.addon })
		if part := p.in(switched.field); part.has("disable") && named {
			part.refuse("disable", "the addon "+switched.addon+" brings it back", "remove the addon from addons, or remove disable")
		}
	}
}

func eksVersion(p part) {
	text, ok := p.known("version")
	if !ok {
		return
	}
	v, err := version.ParseGeneric(text)
	oldest := version.MustParseGeneric("1.21.0")
	switch {
	case err != nil:
		p.refuse("version", fmt.Sprintf("%.80q is no version", text), "write it as v1.36")
	case p.in("network").in("vpc").given("ipv6") && v.LessThan(oldest):
		p.refuse("version", "IPv6 needs Kubernetes v1.21 or later", "take a later version")
	}
}

func eksNetwork(p part) {
	network := p.in("network")
	vpc := network.in("vpc")
	var beside []netip.Prefix
	if second, ok := p.network("secondaryCidrBlock"); ok {
		beside = append(beside, second)
		switch inside := slices.ContainsFunc(secondaryRanges,
			func(r netip.Prefix) bool { return r.Contains(second.Addr()) && second.Bits() >= r.Bits() }); {
		case second.Bits() < awsLargest || second.Bits() > awsSmallest:
			p.refuse("secondaryCidrBlock", fmt.Sprintf("/%d is not between /%d and /%d", second.Bits(), awsLargest, awsSmallest),
				"give it a range of such a size")
		case !inside:
			p.refuse("secondaryCidrBlock", fmt.Sprintf("%s is not within 100.64.0.0/10 or 198.19.0.0/16", second), "give it a range in one of these")
		case vpc.word("cidrBlock") == p.word("secondaryCidrBlock"):
			p.refuse("secondaryCidrBlock", "it is the range of the VPC itself", "give it another range")
		}
		blocks := vpc.each("secondaryCidrBlocks")
		if len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b part) bool { return b.word("ipv4CidrBlock") == p.word("secondaryCidrBlock") }) {
			p.refuse("secondaryCidrBlock", "network.vpc.secondaryCidrBlocks does not have it", "add it there, too")
		}
	}
	awsNetwork(network, p.word("region"), beside...)
	eksZones(network)
	if ipv6 := vpc.in("ipv6"); vpc.given("ipv6") {
		ipv6.together("poolId", "ipamPool")
		ipv6.together("cidrBlock", "ipamPool")
		if ipv6.has("cidrBlock") && !ipv6.has("poolId") && !ipv6.given("ipamPool") {
			ipv6.refuse("cidrBlock", "your own range must come from a pool", "add poolId, or take cidrBlock away")
		}
		if pool := ipv6.in("ipamPool"); ipv6.given("ipamPool") && !pool.has("id") && !pool.has("name") {
			pool.refuse("", "a pool is named by id or name", "add id or name")
		}
		if launch := vpc.word("privateDnsHostnameTypeOnLaunch"); launch != "" && launch != "resource-name" {
			vpc.refuse("privateDnsHostnameTypeOnLaunch", "with IPv6 it can only be resource-name", "set it to resource-name, or take it away")
		}
	}
	public := func(subnet part) bool { return subnet.has("isPublic") }
	if subnets := network.each("subnets"); p.has("restrictPrivateSubnets") && vpc.has("id") &&
		!slices.ContainsFunc(subnets, func(s part) bool { return !public(s) }) {
		p.refuse("restrictPrivateSubnets", "none of network.subnets is private", "name a private subnet, or take restrictPrivateSubnets away")
	}
}

// eksServices judges the network of Services, which EKS takes from the private ranges alone.
func eksServices(p part) {
	const largest, smallest = 12, 24
	for field, prefix := range p.ranges("cidrBlocks") {
		switch {
		case !prefix.Addr().Is4(): // EKS chooses the IPv6 network itself
		case prefix.Bits() < largest || prefix.Bits() > smallest:
			p.refuse(field, fmt.Sprintf("EKS takes a network of Services between /%d and /%d, and it is /%d", largest, smallest, prefix.Bits()),
				"give it a range of such a size")
		case !prefix.Addr().IsPrivate():
			p.refuse(field, fmt.Sprintf("%s is not private, and EKS takes no other network for Services", prefix),
				"give it a range in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
		}
	}
}

// eksZones judges the zones of a cluster's subnets. EKS puts its control plane into two zones.
func eksZones(network part) {
	const needed = "EKS needs subnets in two zones at least"
	vpc, subnets := network.in("vpc"), network.each("subnets")
	limit, limited := vpc.number("availabilityZoneUsageLimit")
	zones, known := map[string]bool{}, true
	for _, subnet := range subnets {
		zone, ok := subnet.known("availabilityZone")
		zones[zone] = true
		known = known && ok
	}
	switch {
	case len(subnets) == 0 && !vpc.has("id") && limited && limit == 1:
		vpc.refuse("availabilityZoneUsageLimit", needed, "set it to 2 or more")
	case len(subnets) == 1, len(subnets) > 1 && known && len(zones) == 1:
		network.refuse("subnets", needed, "add a subnet in another zone")
	}
}

// eksAccess judges who may use the cluster's API.
func eksAccess(p part) {
	config := p.in("accessConfig")
	mode := config.word("authenticationMode")
	if creator, is := config.fields["bootstrapClusterCreatorAdminPermissions"].(bool); is && !creator && mode == "config_map" {
		config.refuse("bootstrapClusterCreatorAdminPermissions", "with the authentication mode config_map nobody could use the cluster",
			"take it away, or set authenticationMode to api")
	}
	entries := p.each("accessEntries")
	if len(entries) > 0 && mode != "api" && mode != "api_and_config_map" {
		p.refuse("accessEntries", "they are for the authentication modes api and api_and_config_map",
			"set accessConfig.authenticationMode to one of these")
	}
	principals := map[string]bool{}
	for _, entry := range entries {
		if principal, ok := entry.known("principalARN"); ok {
			if principals[principal] {
				entry.refuse("principalARN", "another entry is of the same principal, and EKS has one for each", "make one entry of the two")
			}
			principals[principal] = true
		}
		if kind := entry.word("type"); strings.HasPrefix(kind, "ec2_") {
			for _, field := range []string{"kubernetesGroups", "accessPolicies"} {
				if entry.has(field) {
					entry.refuse(field, "an entry of type "+kind+" is for nodes, and has none", "take it away, or set type to standard")
				}
			}
		}
		for _, policy := range entry.each("accessPolicies") {
			if scope := policy.in("accessScope"); scope.word("type") == "namespace" && !scope.has("namespaces") {
				scope.refuse("type", "an access to namespaces needs their names", "add namespaces, or set type to cluster")
			}
		}
	}
}

func eksPool(p part) {
	awsTags(p, eksPoolTags(p))
	awsIAM(p, "roleName", "a role", awsLongestRole)
	eksLabels(p)
	p.taintsOnce("taints")
	awsHooks(p)
	awsInstanceType(p)
	awsInstanceType(p.in("awsLaunchTemplate"))
	least, hasLeast := p.in("scaling").number("minSize")
	most, hasMost := p.in("scaling").number("maxSize")
	switch {
	case hasLeast && least < 0, hasMost && most < 0:
		p.refuse("scaling", "a pool cannot have fewer than 0 nodes", "give it a size of 0 or more")
	case hasLeast && hasMost && most < least:
		p.in("scaling").refuse("maxSize", fmt.Sprintf("%.0f is less than minSize, %.0f", most, least), "give the larger one to maxSize")
	}
	if update := p.in("updateConfig"); p.given("updateConfig") {
		update.together("maxUnavailable", "maxUnavailablePercentage")
		if !update.given("maxUnavailable") && !update.given("maxUnavailablePercentage") {
			p.refuse("updateConfig", "it says neither maxUnavailable nor maxUnavailablePercentage", "add one of the two")
		}
	}
	if access := p.in("remoteAccess"); access.has("public") && access.has("sourceSecurityGroups") {
		access.refuse("sourceSecurityGroups", "everybody is let in where public is true", "remove one of the two")
	}
	if template := p.in("awsLaunchTemplate"); p.given("awsLaunchTemplate") {
		p.together("instanceType", "awsLaunchTemplate")
		p.together("diskSize", "awsLaunchTemplate")
		if template.has("iamInstanceProfile") {
			template.refuse("iamInstanceProfile", "EKS gives its nodes a profile of their own", "take it away, and set roleName of the pool")
		}
	}
}

func awsMachinePool(p part) {
	awsTags(p, awsPoolTags)
	awsHooks(p)
	template := p.in("awsLaunchTemplate")
	awsInstanceType(template)
	awsIAM(template, "iamInstanceProfile", "an instance profile", awsLongestProfile)
	for _, other := range p.in("mixedInstancesPolicy").each("overrides") {
		awsInstanceType(other)
	}
	awsVolumes(template)
	awsMarket(template)
	awsSelectors(p, "subnets")
	awsSelectors(template, "additionalSecurityGroups")
	if template.given("spotMarketOptions") && p.given("mixedInstancesPolicy") {
		template.refuse("spotMarketOptions", "it cannot be set together with mixedInstancesPolicy", "remove one of the two")
	}
	refresh := p.in("refreshPreferences")
	most, hasMost := refresh.number("maxHealthyPercentage")
	least, hasLeast := refresh.number("minHealthyPercentage")
	switch {
	case hasMost && !hasLeast:
		refresh.refuse("maxHealthyPercentage", "it needs minHealthyPercentage", "add minHealthyPercentage")
	case hasMost && most-least > 100:
		refresh.refuse("maxHealthyPercentage", "it is more than 100 above minHealthyPercentage", "lower it")
	}
}

// awsHooks judges the lifecycle hooks of an autoscaling group.
func awsHooks(p part) {
	const shortest, longest = 30 * time.Second, 48 * time.Hour
	for _, hook := range p.each("lifecycleHooks") {
		for _, pair := range [][2]string{{"notificationTargetARN", "roleARN"}, {"roleARN", "notificationTargetARN"}} {
			if hook.has(pair[0]) && !hook.has(pair[1]) {
				hook.refuse(pair[0], "it needs "+pair[1], "add "+pair[1])
			}
		}
		if d, err := time.ParseDuration(hook.word("heartbeatTimeout")); err == nil && (d < shortest || d > longest) {
			hook.refuse("heartbeatTimeout", "it is not between 30s and 48h", "give one that AWS takes")
		}
	}
}
