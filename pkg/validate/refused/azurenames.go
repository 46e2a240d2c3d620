package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var azureVMSize = regexp.MustCompile(`^[A-Za-z]+_[A-Za-z0-9_-]+$`)

// azureSize judges the form of a machine size.
func azureSize(p part, field string) {
	if name, ok := p.known(field); ok && !azureVMSize.MatchString(name) {
		p.refuse(field, fmt.Sprintf("%.60q is no size of a machine in Azure", name), "write it as `az vm list-sizes` has it, as in Standard_D4s_v5")
	}
}

// The keys of the tags that the provider adds to what it makes for a cluster, and to a machine.
var (
	azureClusterTags = []string{"Name", "sigs.k8s.io_cluster-api-provider-azure_role", "sigs.k8s.io_cluster-api-provider-azure_cluster_"}
	azureMachineTags = append(slices.Clip(azureClusterTags), "kubernetes.io_cluster_")
)

// azureTags judges the tags of all resources that the provider makes. own are the keys of the tags that the provider adds.
func azureTags(p part, own []string) {
	azureTagsIn(p, "additionalTags")
	p.tagCount(inAzure, "additionalTags", own, p.in("additionalTags"))
}

// asoResources judges the objects of Azure Service Operator that a cluster, a control plane or a pool contains.
func asoResources(p part) {
	for _, resource := range p.each("resources") {
		spec := resource.in("spec")
		azureRegion(spec)
		azureTagsIn(spec, "tags")
	}
}

func azureTagsIn(p part, field string) {
	const longestKey, longestValue = 512, 256
	tags := p.in(field)
	for _, key := range tags.names() {
		value := tags.word(key)
		switch lower := strings.ToLower(key); {
		case strings.Contains(key+value, "${"):
		case len(key) > longestKey:
			p.refuse(field, fmt.Sprintf("the key %.40q has %d characters, and Azure takes %d", key, len(key), longestKey),
				"give the tag another key")
		case strings.ContainsAny(key, `<>%&\?/`):
			p.refuse(field, fmt.Sprintf("the key %.80q has characters that Azure does not take", key), `use none of < > % & \ ? /`)
		case slices.ContainsFunc([]string{"microsoft", "azure", "windows"}, func(kept string) bool { return strings.HasPrefix(lower, kept) }):
			p.refuse(field, fmt.Sprintf("the key %.80q begins with a word that only Azure may use", key), "give the tag another key")
		case len(value) > longestValue:
			p.refuse(field, fmt.Sprintf("the value of %.80q has %d characters, and Azure takes %d", key, len(value), longestValue), "shorten it")
		}
	}
}

// azureRanges judges the ranges of a subnet, and whether they overlap with taken, the ranges of the subnets before it.
func azureRanges(subnet part, taken *[]netip.Prefix) {
	const smallest, sixBits = 29, 64
	before := len(*taken)
	for field, prefix := range subnet.ranges("cidrBlocks") {
		switch {
		case prefix.Addr().Is4() && prefix.Bits() > smallest:
			subnet.refuse(field, fmt.Sprintf("Azure has no subnet smaller than /%d, and it is /%d", smallest, prefix.Bits()),
				"give it a larger range")
		case prefix.Addr().Is6() && prefix.Bits() != sixBits:
			subnet.refuse(field, fmt.Sprintf("a subnet of IPv6 is /%d in Azure, and it is /%d", sixBits, prefix.Bits()),
				"give it a range of this size")
		case slices.ContainsFunc((*taken)[:before], prefix.Overlaps):
			subnet.refuse(field, fmt.Sprintf("%s has addresses in common with a subnet before it", prefix), "give each a range of its own")
		}
		*taken = append(*taken, prefix)
	}
}

// azureKeeps tells whether Azure reserves an address of a subnet.
func azureKeeps(subnet netip.Prefix, ip netip.Addr) bool {
	const first = 4
	if !subnet.Contains(ip) {
		return false
	}
	kept := subnet.Masked().Addr()
	for range first {
		if kept == ip {
			return true
		}
		kept = kept.Next()
	}
	return !subnet.Contains(ip.Next())
}

// within tells whether one range is completely in another range.
func within(inner, outer netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
