package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var gcpName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Patterns with the letters of all languages take megabytes, so they are made by who needs them first and not at the program's start.
var (
	gcpLabelKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`) })
	gcpLabel    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`) })
)

const gcpNameHint = "use 1 to 63 lower-case letters, digits and -, that begin with a letter and do not end with -"

// gcpNamed judges the name of a resource of Google Cloud.
func gcpNamed(p part, field, what string) {
	if name, ok := p.known(field); ok && !gcpName.MatchString(name) {
		p.refuse(field, fmt.Sprintf("%.80q is no name of %s in Google Cloud", name, what), gcpNameHint)
	}
}

// gcpLabels judges the labels of the resources that the provider makes.
func gcpLabels(p part) {
	const limit = 64
	labels := p.in("additionalLabels")
	if len(labels.fields) > limit {
		p.refuse("additionalLabels", fmt.Sprintf("there are %d labels, and Google Cloud takes %d", len(labels.fields), limit),
			"remove those that nobody looks for")
	}
	for _, key := range labels.names() {
		value, known := labels.known(key)
		switch {
		case !gcpLabelKey().MatchString(key):
			p.refuse("additionalLabels", fmt.Sprintf("%.80q is no key of a label in Google Cloud", key),
				"use 1 to 63 lower-case letters, digits, _ and -, that begin with a letter")
		case known && !gcpLabel().MatchString(value):
			p.refuse("additionalLabels", fmt.Sprintf("the label %.63s cannot have the value %.80q in Google Cloud", key, value),
				"use at most 63 lower-case letters, digits, _ and -")
		}
	}
}

// gcpTags judges the network tags of machines.
func gcpTags(p part, field string) {
	list, _ := p.fields[field].([]any)
	for i, item := range list {
		gcpNamed(part{p.object, map[string]any{fmt.Sprintf("%s[%d]", field, i): item}, p.at, p.report}, fmt.Sprintf("%s[%d]", field, i), "a tag")
	}
}

// gcpNetwork judges the network of a cluster.
func gcpNetwork(p part) {
	const smallestMTU, largestMTU = 1300, 8896
	gcpNamed(p, "name", "a network")
	if n, ok := p.number("mtu"); ok && n != 0 {
		p.between("mtu", smallestMTU, largestMTU)
	}
	var taken []netip.Prefix
	for _, subnet := range p.each("subnets") {
		gcpNamed(subnet, "name", "a subnet")
		taken = gcpRange(subnet, "cidrBlock", taken)
		second := subnet.in("secondaryCidrBlocks")
		for _, name := range second.names() {
			taken = gcpRange(second, name, taken)
		}
	}
	for _, rule := range p.in("firewall").each("firewallRules") {
		gcpNamed(rule, "name", "a firewall rule")
		for _, allowed := range slices.Concat(rule.each("allowed"), rule.each("denied")) {
			protocol, ok := allowed.known("IPProtocol")
			if ok && allowed.has("ports") && !slices.Contains([]string{"tcp", "udp", "sctp"}, strings.ToLower(protocol)) {
				allowed.refuse("ports", fmt.Sprintf("the protocol %.20s has no ports", protocol), "take it away, or set IPProtocol to TCP or UDP")
			}
		}
	}
}

// gcpRange judges a range of a subnet. All ranges in a network have to be apart. It returns taken with this range.
func gcpRange(p part, field string, taken []netip.Prefix) []netip.Prefix {
	const smallest = 29
	text, _ := p.known(field)
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil || !prefix.Addr().Is4(): // other checks report a text that is no network
		return taken
	case prefix.Bits() > smallest:
		p.refuse(field, fmt.Sprintf("Google Cloud has no subnet smaller than /%d, and it is /%d", smallest, prefix.Bits()),
			"give it a larger range")
	case prefix != prefix.Masked():
		p.refuse(field, fmt.Sprintf("%s is an address in %s, and Google Cloud takes no range that does not begin with its first address", prefix,
			prefix.Masked()), fmt.Sprintf("write %s", prefix.Masked()))
	case slices.ContainsFunc(taken, prefix.Overlaps):
		p.refuse(field, fmt.Sprintf("%s has addresses in common with a range before it", prefix), "give each a range of its own")
	}
	return append(taken, prefix)
}

// gcpScheduling judges machines that Google Cloud may take away.
func gcpScheduling(p part) {
	spot := p.word("provisioningModel") == "Spot"
	if (spot || p.has("preemptible")) && p.word("onHostMaintenance") == "Migrate" {
		p.refuse("onHostMaintenance", "a machine that Google Cloud may end at any time does not move to another host", "set it to Terminate")
	}
	if p.has("preemptible") && p.word("provisioningModel") == "Standard" {
		p.refuse("provisioningModel", "preemptible is true, and such a machine is no standard one", "set it to Spot, and remove preemptible")
	}
	if p.has("guestAccelerators") && p.word("onHostMaintenance") == "Migrate" {
		p.refuse("onHostMaintenance", "a machine with accelerators does not move to another host", "set it to Terminate")
	}
}
