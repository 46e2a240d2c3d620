package refused

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

func openstackCluster(p part) {
	openstackTags(p)
	for _, subnet := range p.each("managedSubnets") {
		openstackSubnet(subnet)
	}
	openstackOwner(p)
	openstackAddresses(p)
	openstackBalancer(p)
	openstackGroups(p)
	bastion := p.in("bastion")
	bastion.openstackAddress("floatingIP")
	openstackMachine(bastion.in("spec"))
}

// openstackOwner reports a cluster for which the provider neither makes a network nor finds one.
func openstackOwner(p part) {
	if !p.isTemplate() && !p.has("managedSubnets") && !p.given("network") && !p.has("subnets") {
		p.refuse("", "nothing says in which network the machines are",
			"add managedSubnets, from which the provider makes a network, or name an existing one in network")
	}
}

// openstackAddresses reports addresses of the API server that are none.
func openstackAddresses(p part) {
	server := p.in("apiServer") // where these fields are from v1beta2 on
	p.openstackAddress("apiServerFloatingIP")
	server.openstackAddress("floatingIP")
	for _, one := range []struct {
		part
		field string
	}{{p, "apiServerFixedIP"}, {server, "fixedIP"}} {
		// Without a load balancer it may also be the name of a host, which never ends with a number.
		if text := one.word(one.field); openstackBalanced(p) || strings.Trim(text, "0123456789.") == "" {
			one.openstackAddress(one.field)
		}
	}
}

// openstackEndpoint reports a cluster whose API server is on its machines, and has no address that the provider finds or makes.
func openstackEndpoint(p part) {
	server := p.in("apiServer")
	disabled := p.has("disableAPIServerFloatingIP") || server.fields["enableFloatingIP"] == false
	if disabled && !openstackBalanced(p) &&
		!p.given("apiServerFixedIP") && !server.given("fixedIP") && !p.in("controlPlaneEndpoint").has("host") {
		p.refuse("", "the API server has no address: it has neither a floating IP nor a load balancer",
			"add apiServerLoadBalancer, or apiServerFixedIP with an address that you move to the control plane's machines yourself")
	}
}

// openstackBalanced tells whether the provider makes a load balancer for the API server.
func openstackBalanced(p part) bool {
	return isEnabled(p, "apiServerLoadBalancer") || isEnabled(p.in("apiServer"), "managedLoadBalancer")
}

// isEnabled tells whether p has something in a field that is on unless it says enabled: false.
func isEnabled(p part, field string) bool {
	return p.given(field) && p.in(field).fields["enabled"] != false
}

// openstackBalancer judges who may reach the load balancer of the API server. The provider leaves out what is no IPv4 network, so that
// those who are meant do not get in.
func openstackBalancer(p part) {
	for _, balancer := range []part{p.in("apiServerLoadBalancer"), p.in("apiServer").in("managedLoadBalancer")} {
		list, _ := balancer.fields["allowedCIDRs"].([]any)
		for i, item := range list {
			field := fmt.Sprintf("allowedCIDRs[%d]", i)
			one := part{p.object, map[string]any{field: item}, balancer.at, p.report}
			if prefix, ok := one.openstackSource(field); ok && !prefix.Addr().Is4() {
				one.refuse(field, fmt.Sprintf("the provider leaves %s out, because it knows only IPv4 here", prefix), "write an IPv4 network")
			}
		}
	}
}

// openstackSubnet judges a subnet that the provider makes, always with IPv4.
func openstackSubnet(p part) {
	text, _ := p.known("cidr")
	whole, err := netip.ParsePrefix(text)
	if err != nil { // other checks report a text that is no network
		return
	}
	if !whole.Addr().Is4() {
		p.refuse("cidr", "the provider makes subnets of IPv4 only", "write an IPv4 network, or make the network yourself and name it in network")
		return
	}
	list, _ := p.fields["dnsNameservers"].([]any)
	for i, item := range list {
		field := fmt.Sprintf("dnsNameservers[%d]", i)
		one := part{p.object, map[string]any{field: item}, p.at, p.report}
		if ip, ok := one.openstackAddress(field); ok && !ip.Is4() {
			one.refuse(field, "a subnet of IPv4 takes servers with IPv4 addresses", "write such an address")
		}
	}
	openstackPools(p, whole.Masked())
}

// openstackPools judges the parts of a subnet from which machines get their addresses.
func openstackPools(p part, whole netip.Prefix) {
	type pool struct{ start, end netip.Addr }
	var before []pool
	for _, one := range p.each("allocationPools") {
		start, hasStart := one.openstackAddress("start")
		end, hasEnd := one.openstackAddress("end")
		overlaps := func(b pool) bool { return start.Compare(b.end) <= 0 && b.start.Compare(end) <= 0 }
		switch {
		case !hasStart || !hasEnd:
			continue
		case !whole.Contains(start):
			one.refuse("start", fmt.Sprintf("%s is not in the subnet, %s", start, whole), "take one of the subnet's addresses")
		case !whole.Contains(end):
			one.refuse("end", fmt.Sprintf("%s is not in the subnet, %s", end, whole), "take one of the subnet's addresses")
		case end.Less(start):
			one.refuse("end", fmt.Sprintf("%s is before start, %s", end, start), "give the lower address to start")
		case slices.ContainsFunc(before, overlaps):
			one.refuse("start", "the pool has addresses in common with one before it", "let each begin after the end of the other")
		}
		before = append(before, pool{start, end})
	}
}

// openstackGroups judges the rules of the security groups that the provider makes.
func openstackGroups(p part) {
	groups := p.in("managedSecurityGroups")
	for _, field := range []string{
		"allNodesSecurityGroupRules", "clusterNodesSecurityGroupRules", "controlPlaneNodesSecurityGroupRules", "workerNodesSecurityGroupRules",
	} {
		for _, rule := range groups.each(field) {
			openstackRemote(rule, isEnabled(p, "bastion") || p.isTemplate())
			openstackPorts(rule)
		}
	}
}

// openstackRemote judges for whom a rule is.
func openstackRemote(p part, hasBastion bool) {
	var remotes []string
	for _, field := range []string{"remoteManagedGroups", "remoteGroupID", "remoteIPPrefix"} {
		if p.given(field) {
			remotes = append(remotes, field)
		}
	}
	if len(remotes) > 1 {
		p.refuse(remotes[1], "it cannot be set together with "+remotes[0], "make two rules of it")
		return
	}
	if managed, _ := p.fields["remoteManagedGroups"].([]any); slices.Contains(managed, any("bastion")) && !hasBastion {
		p.refuse("remoteManagedGroups", "the cluster has no bastion, so that there is no group of it",
			"remove bastion from it, or add bastion to the spec")
	}
	prefix, ok := p.openstackSource("remoteIPPrefix")
	family := p.word("etherType")
	if ok && (family == "IPv4" && !prefix.Addr().Is4() || family == "IPv6" && prefix.Addr().Is4()) {
		p.refuse("remoteIPPrefix", fmt.Sprintf("%s is no network of %s, which etherType says", prefix, family), "change one of the two")
	}
}

// openstackPorts judges the ports of a rule. The provider leaves out a 0.
func openstackPorts(p part) {
	const from, to = "portRangeMin", "portRangeMax"
	openstackProtocol(p)
	protocol, isKnown := p.known("protocol")
	least, _ := p.number(from)
	most, _ := p.number(to)
	p.openstackPort(from)
	p.openstackPort(to)
	field, other := from, to
	if !p.has(from) {
		field, other = to, from
	}
	hasPorts := slices.Contains([]string{"tcp", "udp"}, strings.ToLower(protocol)) // the numbers mean something else for others
	switch {
	case !p.has(from) && !p.has(to):
	case !p.has("protocol"):
		p.refuse(field, "ports need a protocol", "add protocol, such as tcp")
	case !isKnown || !hasPorts:
	case !p.has(other):
		p.refuse(field, "a range of ports needs "+other+", which is not 0", "set "+other)
	case most < least:
		p.refuse(to, fmt.Sprintf("%.0f is less than portRangeMin, %.0f", most, least), "give the lower number to portRangeMin")
	}
}

// openstackPort reports a number that no port has.
func (p part) openstackPort(field string) {
	const last = 65535
	if n, ok := p.number(field); ok && n > last {
		p.refuse(field, fmt.Sprintf("%.0f is more than %d, the last port", n, last), "give the number of a port")
	}
}
