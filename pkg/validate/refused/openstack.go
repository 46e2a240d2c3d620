package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// openstackTag is a tag as Nova takes it, of servers and of their disks.
var openstackTag = regexp.MustCompile(`^[^,/]{1,60}$`)

const openstackTagHint = "use 1 to 60 characters, and neither , nor /"

// openstackMachine judges the spec of a machine, a template of machines, or a server.
func openstackMachine(p part) {
	if p.isTemplate() && p.given("providerID") {
		p.refuse("providerID", "a template cannot have it: each machine has its own", "take it away")
	}
	openstackTags(p)
	openstackDisks(p)
	for _, port := range p.each("ports") {
		port.oneOf("vnicType", vnicTypes...)
		openstackPort(port)
	}
}

// openstackTags judges the tags of servers. Tags of a cluster are those of its servers, too.
func openstackTags(p part) {
	const limit = 50
	list, _ := p.fields["tags"].([]any)
	if len(list) > limit {
		p.refuse("tags", fmt.Sprintf("there are %d tags, and Nova takes %d", len(list), limit), "remove those that nobody looks for")
	}
	for i, item := range list {
		text, _ := item.(string)
		if !strings.Contains(text, "${") && !openstackTag.MatchString(text) {
			p.refuse(fmt.Sprintf("tags[%d]", i), fmt.Sprintf("Nova does not take the tag %.80q", text), openstackTagHint)
		}
	}
}

func openstackDisks(p part) {
	for _, disk := range p.each("additionalBlockDevices") {
		// CAPO's pkg/cloud/services/compute/instance.go knows no other types.
		storage := disk.in("storage")
		if kind, given := storage.known("type"); given && kind != "Volume" && kind != "Local" {
			storage.refuse("type", fmt.Sprintf("%.40q is no type of a disk", kind), "write Volume or Local")
		}
		name, ok := disk.known("name")
		switch {
		case !ok:
		case name == "root":
			disk.refuse("name", "the provider calls the disk that a machine boots from root",
				"give this one another name, or set rootVolume instead")
		case !openstackTag.MatchString(name):
			disk.refuse("name", fmt.Sprintf("the name is a tag of the disk, and Nova does not take %.80q", name), openstackTagHint)
		}
	}
}

func openstackPort(p part) {
	isOpen := p.has("disablePortSecurity") || p.fields["enablePortSecurity"] == false
	if isOpen && p.has("securityGroups") {
		p.refuse("securityGroups", "a port without port security has no security groups", "remove them, or leave port security on")
	}
	fixed := p.each("fixedIPs")
	for _, one := range fixed {
		one.openstackAddress("ipAddress")
	}
	isPlaced := func(one part) bool { return one.given("subnet") }
	if len(fixed) > 0 && !p.given("network") && !slices.ContainsFunc(fixed, isPlaced) {
		p.refuse("fixedIPs", "nothing says in which network the addresses are: the provider does not take that of the cluster for them",
			"add network to the port, or subnet to an address")
	}
	for _, pair := range p.each("allowedAddressPairs") {
		pair.openstackSource("ipAddress")
	}
}

// openstackAddress reports a text that is no address.
func (p part) openstackAddress(field string) (ip netip.Addr, ok bool) {
	text, ok := p.known(field)
	if !ok {
		return ip, false
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		p.refuse(field, fmt.Sprintf("%.80q is no address", text), "write it as 192.0.2.10")
	}
	return ip, err == nil
}

// openstackSource returns the network in a field, which may also be a single address. It reports a text that is neither.
func (p part) openstackSource(field string) (prefix netip.Prefix, ok bool) {
	text, ok := p.known(field)
	if !ok {
		return prefix, false
	}
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()), true
	}
	return p.parse(field, text)
}
