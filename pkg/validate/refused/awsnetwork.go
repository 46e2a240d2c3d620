package refused

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// AWS accepts VPCs and subnets with prefixes of these lengths.
const awsLargest, awsSmallest = 16, 28

// awsRange returns the range in a field of a VPC or a subnet. It reports a range that AWS does not accept.
func (p part) awsRange(field string) (prefix netip.Prefix, ok bool) {
	text, _ := p.known(field)
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() { // other checks report a text that is no network
		return prefix, false
	}
	if prefix.Bits() < awsLargest || prefix.Bits() > awsSmallest {
		p.refuse(field, fmt.Sprintf("/%d is not between /%d and /%d", prefix.Bits(), awsLargest, awsSmallest), "give it a range of such a size")
		return prefix, false
	}
	return prefix.Masked(), true
}

// awsNetwork judges the network of a cluster in a region. beside are ranges that other fields add to its VPC.
func awsNetwork(p part, region string, beside ...netip.Prefix) {
	vpc, subnets := p.in("vpc"), p.each("subnets")
	ranges := append(awsVPC(vpc), beside...)
	if first, ok := vpc.awsRange("cidrBlock"); ok && !vpc.has("id") {
		if len(subnets) == 0 {
			awsDefaultSubnets(vpc, first, region)
		}
		awsWithin(subnets, append(ranges, first))
	}
	awsSubnets(subnets, region)
	awsOwner(p, vpc, subnets)
	awsIngress(p, "additionalControlPlaneIngressRules")
	awsIngress(p, "additionalNodeIngressRules")
	awsIngress(p.in("cni"), "cniIngressRules")
	awsSources(p, "nodePortIngressRuleCidrBlocks")
	if vpc.has("elasticIpPool") {
		awsAddressPool(vpc.in("elasticIpPool"))
	}
}

// awsOwner judges whether VPC and subnets belong together: in an existing VPC the provider uses the subnets that are named and makes none,
// and in a VPC of its own it makes each.
// Of a template a ClusterClass may patch the one or the other.
func awsOwner(p, vpc part, subnets []part) {
	switch {
	case p.isTemplate():
	case !vpc.has("id"):
		awsMadeSubnets(p, subnets)
	case len(subnets) == 0 && !vpc.in("tags").isOwned():
		p.refuse("subnets", "an existing VPC needs its subnets named: the provider makes none there",
			"add the id of each subnet that it shall use")
	}
}

// isOwned tells whether tags mark a resource as made for a cluster, so that the provider takes it for its own.
func (p part) isOwned() bool {
	return slices.ContainsFunc(p.names(), func(key string) bool { return p.word(key) == "owned" || strings.Contains(p.word(key), "${") })
}

// awsMadeSubnets judges subnets that the provider makes itself.
func awsMadeSubnets(p part, subnets []part) {
	public := len(subnets) == 0
	for _, subnet := range subnets {
		id, known := subnet.known("id")
		public = public || subnet.given("isPublic") && subnet.fields["isPublic"] != false && !subnet.isEdge()
		switch {
		case known && strings.HasPrefix(id, "subnet-"):
			subnet.refuse("id", fmt.Sprintf(
				"%.40s is an existing subnet, and without network.vpc.id the provider makes a VPC that does not have it", id),
				"add the VPC of the subnet as network.vpc.id")
			return
		case !subnet.has("cidrBlock") && !subnet.has("isIpv6"):
			subnet.refuse("", "the provider makes this subnet, and does not know its range", "add cidrBlock, a part of network.vpc.cidrBlock")
		}
	}
	if !public {
		p.refuse("subnets", "none is public, and the provider makes no VPC without a public subnet in a zone of the region",
			"set isPublic to true in one of them, or name an existing VPC in vpc.id")
	}
}

// isEdge tells whether a subnet is in a zone that belongs to a zone of the region.
func (p part) isEdge() bool {
	zone := p.word("zoneType")
	return zone == "local-zone" || zone == "wavelength-zone" || p.has("parentZoneName")
}

// awsVPC judges the address ranges of a VPC. It returns the secondary ones.
func awsVPC(vpc part) (ranges []netip.Prefix) {
	vpc.awsID("id", "vpc")
	primary, _ := vpc.known("cidrBlock")
	pool := vpc.in("ipamPool")
	if vpc.given("ipamPool") {
		if vpc.has("cidrBlock") {
			vpc.refuse("cidrBlock", "a pool of addresses (ipamPool) gives the VPC its range", "remove one of the two")
		}
		if !pool.has("id") && !pool.has("name") {
			pool.refuse("", "a pool is named by id or name", "add id or name")
		}
	}
	vpc.in("ipv6").network("cidrBlock")
	for _, block := range vpc.each("secondaryCidrBlocks") {
		prefix, ok := block.network("ipv4CidrBlock")
		if !ok {
			continue
		}
		first, err := netip.ParsePrefix(primary)
		if err == nil && first.Overlaps(prefix) {
			block.refuse("ipv4CidrBlock", fmt.Sprintf("%s has addresses in common with the VPC's own range, %s", prefix, primary),
				"give it a range beside that one")
		} else if prefix, ok := block.awsRange("ipv4CidrBlock"); ok {
			ranges = append(ranges, prefix)
		}
	}
	return ranges
}

// awsDefaultSubnets judges whether the VPC has room for the subnets that the provider makes if none are named. The provider divides the VPC
// into one part for each zone, for its private subnet, and one more part, which it divides among the public subnets.
func awsDefaultSubnets(vpc part, whole netip.Prefix, region string) {
	// The provider uses all zones of the region, up to the limit. All regions but one have at least three.
	zones := uint(3)
	if region == "us-west-1" {
		zones = 2
	}
	if limit, given := vpc.number("availabilityZoneUsageLimit"); given && limit >= 1 {
		zones = min(zones, uint(limit))
	}
	halvings := bits.Len(zones) + bits.Len(zones-1) // of the VPC into zones+1 parts, and of one part into zones
	if length := whole.Bits() + halvings; length > awsSmallest {
		vpc.refuse("cidrBlock", fmt.Sprintf("in a VPC of /%d the subnets of %s are /%d, and AWS has none smaller than /%d",
			whole.Bits(), plain.Count(int(zones), "zone"), length, awsSmallest),
			fmt.Sprintf("give the VPC a range of /%d or larger", awsSmallest-halvings))
	}
}

// awsWithin reports subnets outside of the ranges of their VPC.
func awsWithin(subnets []part, ranges []netip.Prefix) {
	for _, subnet := range subnets {
		text, _ := subnet.known("cidrBlock")
		own, err := netip.ParsePrefix(text)
		within := func(r netip.Prefix) bool { return r.Bits() <= own.Bits() && r.Contains(own.Addr()) }
		if err == nil && own.Addr().Is4() && !slices.ContainsFunc(ranges, within) {
			subnet.refuse("cidrBlock", fmt.Sprintf("%s is not within the ranges of the VPC", own), "give the subnet a part of network.vpc.cidrBlock")
		}
	}
}

// awsSubnets judges each subnet, and whether subnets overlap.
func awsSubnets(subnets []part, region string) {
	var before []netip.Prefix
	ids := map[string]bool{}
	for _, subnet := range subnets {
		subnet.network("ipv6CidrBlock")
		if zone := subnet.word("zoneType"); (zone == "local-zone" || zone == "wavelength-zone") && !subnet.has("parentZoneName") {
			subnet.refuse("zoneType", "a subnet in a "+zone+" needs parentZoneName",
				"add the zone that it belongs to: `aws ec2 describe-availability-zones --all-availability-zones`")
		}
		subnet.inRegion("availabilityZone", region)
		if id, ok := subnet.known("id"); ok {
			if ids[id] {
				subnet.refuse("id", "another subnet has this id", "name each once")
			}
			ids[id] = true
		}
		if own, ok := subnet.awsRange("cidrBlock"); ok {
			if slices.ContainsFunc(before, own.Overlaps) {
				subnet.refuse("cidrBlock", fmt.Sprintf("%s has addresses in common with a subnet before it", own), "give each a range of its own")
			}
			before = append(before, own)
		}
	}
}

// inRegion reports a zone of another region.
func (p part) inRegion(field, region string) {
	zone, ok := p.known(field)
	if ok && region != "" && !strings.Contains(region, "${") && !strings.HasPrefix(zone, region) {
		p.refuse(field, fmt.Sprintf("%.60q is no zone of the region %.40s", zone, region),
			"take one of this region: `aws ec2 describe-availability-zones --region "+region+"`")
	}
}

// awsIngress judges the sources of ingress rules.
func awsIngress(p part, field string) {
	for _, rule := range p.each(field) {
		blocks := rule.given("cidrBlocks") || rule.given("ipv6CidrBlocks")
		groups := rule.given("sourceSecurityGroupIds") || rule.given("sourceSecurityGroupRoles")
		rule.portRange("fromPort", "toPort")
		awsSources(rule, "cidrBlocks")
		awsSources(rule, "ipv6CidrBlocks")
		switch {
		case rule.has("natGatewaysIPsSource") && (blocks || groups):
			rule.refuse("natGatewaysIPsSource", "a rule for the NAT gateways has no other sources", "make two rules of it")
		case blocks && groups:
			rule.refuse("", "a rule lets in networks or security groups, and not both", "make two rules of it")
		}
	}
}
