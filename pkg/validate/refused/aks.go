package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

var (
	aksPoolName  = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	aksDNSPrefix = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,52}[a-zA-Z0-9]$`)
	aksVersion   = regexp.MustCompile(`^[v]?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_.+]*)?$`)
)

func aksControlPlane(p part) {
	if version, ok := p.known("version"); ok && !aksVersion.MatchString(version) {
		p.refuse("version", fmt.Sprintf("%.80q is no version", version), "write all three numbers, as in v1.36.3")
	}
	if prefix, ok := p.known("dnsPrefix"); ok && !aksDNSPrefix.MatchString(prefix) {
		p.refuse("dnsPrefix", fmt.Sprintf("%.80q is no prefix of a name", prefix), "use 2 to 54 letters, digits and -")
	}
	if key, ok := p.known("sshPublicKey"); ok {
		azureSSHKey(p, key)
	}
	if p.given("disableLocalAccounts") && !p.given("aadProfile") {
		p.refuse("disableLocalAccounts", "without aadProfile nobody could log in", "add aadProfile, or take it away")
	}
	switch identity := p.in("identity"); {
	case identity.word("type") == "UserAssigned" && !identity.has("userAssignedIdentityResourceID"):
		identity.refuse("type", "an identity of yours needs its id", "add userAssignedIdentityResourceID")
	case identity.word("type") != "UserAssigned" && identity.has("userAssignedIdentityResourceID"):
		identity.refuse("userAssignedIdentityResourceID", "it is for the type UserAssigned", "set type to UserAssigned, or take it away")
	}
	azureRegion(p)
	azureAccount(p, "resourceGroupName")
	azureTags(p, nil)
	aksNames(p)
	aksSecurity(p)
	aksNetwork(p)
	aksAutoscaler(p.in("autoscalerProfile"))
	aksExtensions(p)
}

func aksSecurity(p part) {
	profile := p.in("securityProfile")
	if profile.given("workloadIdentity") && !p.in("oidcIssuerProfile").has("enabled") {
		profile.refuse("workloadIdentity", "it needs the issuer of tokens", "set oidcIssuerProfile.enabled to true")
	}
	kms := profile.in("azureKeyVaultKms")
	if !profile.given("azureKeyVaultKms") {
		return
	}
	private := kms.word("keyVaultNetworkAccess") == "Private"
	switch {
	case p.in("identity").word("type") != "UserAssigned":
		profile.refuse("azureKeyVaultKms", "it needs an identity of yours", "set identity.type to UserAssigned")
	case private && !kms.has("keyVaultResourceID"):
		kms.refuse("keyVaultNetworkAccess", "a private vault needs its id", "add keyVaultResourceID")
	case !private && kms.has("keyVaultResourceID"):
		kms.refuse("keyVaultResourceID", "it is for a vault with private access", "set keyVaultNetworkAccess to Private, or take it away")
	}
}

func aksNetwork(p part) {
	plane, policy := p.word("networkDataplane"), p.word("networkPolicy")
	overlay := p.word("networkPluginMode") == "overlay"
	switch {
	case plane == "cilium" && !overlay:
		p.refuse("networkDataplane", "cilium needs the mode overlay", "set networkPluginMode to overlay")
	case plane == "cilium" && policy != "cilium":
		p.refuse("networkDataplane", "cilium needs its own network policy", "set networkPolicy to cilium")
	case policy == "cilium" && plane != "" && plane != "cilium":
		p.refuse("networkPolicy", "cilium is for the data plane cilium", "set networkDataplane to cilium")
	}
	if overlay && p.word("networkPlugin") == "kubenet" {
		p.refuse("networkPluginMode", "kubenet has no overlay", "set networkPlugin to azure, or take it away")
	}
	network := p.in("virtualNetwork")
	outer, err := netip.ParsePrefix(network.word("cidrBlock"))
	inner, innerErr := netip.ParsePrefix(network.in("subnet").word("cidrBlock"))
	if err == nil && innerErr == nil && !outer.Contains(inner.Addr()) {
		network.in("subnet").refuse("cidrBlock", fmt.Sprintf("%s is not within the network's own range, %s", inner, outer),
			"give the subnet a part of it")
	}
	access := p.in("apiServerAccessProfile")
	access.networks("authorizedIPRanges")
	zone, known := access.known("privateDNSZone")
	if own := known && !strings.EqualFold(zone, "system") && !strings.EqualFold(zone, "none"); own && !access.has("enablePrivateCluster") {
		access.refuse("privateDNSZone", "a private zone is for a private cluster", "set enablePrivateCluster to true, or take it away")
	}
	balancer, kinds := p.in("loadBalancerProfile"), 0
	for _, field := range []string{"managedOutboundIPs", "outboundIPPrefixes", "outboundIPs"} {
		if balancer.has(field) {
			kinds++
		}
	}
	if kinds > 1 {
		p.refuse("loadBalancerProfile", "managedOutboundIPs, outboundIPPrefixes and outboundIPs exclude each other", "keep one of them")
	}
	balancer.between("managedOutboundIPs", 1, 100)
	balancer.between("allocatedOutboundPorts", 0, 64000)
	balancer.between("idleTimeoutInMinutes", 4, 120)
}

// between reports a number that is not in a range.
func (p part) between(field string, least, most float64) {
	if n, ok := p.number(field); ok && (n < least || n > most) {
		p.refuse(field, fmt.Sprintf("%.0f is not between %.0f and %.0f", n, least, most), "give one that the cloud takes")
	}
}

func aksPool(p part) {
	of, field := p, "name"
	system := p.word("osType")
	if !p.has("name") && !p.isTemplate() { // without it, the name of the object counts
		of, field = part{p.object, map[string]any{"name": p.object.Name}, "metadata", p.report}, "name"
	}
	aksNamed(of, field, system)
	if p.word("mode") == "System" && system != "" && system != "Linux" {
		p.refuse("osType", "a pool of the mode System has Linux", "set osType to Linux, or mode to User")
	}
	p.between("maxPods", 10, 250)
	if p.has("nodePublicIPPrefixID") && !p.has("enableNodePublicIP") {
		p.refuse("nodePublicIPPrefixID", "it is for nodes with public addresses", "set enableNodePublicIP to true, or take it away")
	}
	p.labelsOfNodes("nodeLabels")
	for key := range p.in("nodeLabels").fields {
		if strings.HasPrefix(key, "kubernetes.azure.com") {
			p.refuse("nodeLabels", fmt.Sprintf("the label %.80s is AKS's own", key), "give it another key")
		}
	}
	if name, ok := p.known("subnetName"); ok && !p.isTemplate() && !aksSubnetName.MatchString(name) {
		p.refuse("subnetName", fmt.Sprintf("%.80q is no name of a subnet", name), "use 2 to 80 letters, digits and . _ -")
	}
	p.taintsOnce("taints")
	azureSize(p, "sku")
	azureTags(p, nil)
	aksKubelet(p)
	aksScaling(p)
}

// aksNamed judges the name of a pool. That of a pool with Windows is shorter.
func aksNamed(p part, field, system string) {
	const longestLinux, longestWindows = 12, 6
	name, known := p.known(field)
	longest := longestLinux
	if system == "Windows" {
		longest = longestWindows
	}
	switch {
	case !known:
	case len(name) > longest:
		p.refuse(field, fmt.Sprintf("the name of the pool has %d characters, and AKS takes %d", len(name), longest),
			"give the pool a shorter "+aksNameField(p))
	case !aksPoolName.MatchString(name):
		p.refuse(field, fmt.Sprintf("%.80q is no name of a pool in AKS", name),
			"give the pool a "+aksNameField(p)+" of lower-case letters and digits, that begins with a letter")
	}
}

// aksNameField is the field with the name of a pool in AKS.
func aksNameField(p part) string {
	if strings.Contains(p.object.Kind, "ASO") {
		return "azureName"
	}
	return "spec.name"
}

// aksScaling judges the sizes of a pool, and whether it can be the one for the system: AKS ends no machine of such a pool.
func aksScaling(p part) {
	system, scaling := p.word("mode") == "System", p.in("scaling")
	least, hasLeast := scaling.number("minSize")
	most, hasMost := scaling.number("maxSize")
	switch {
	case hasLeast && hasMost && most < least:
		scaling.refuse("maxSize", fmt.Sprintf("%.0f is less than minSize, %.0f", most, least), "give the larger one to maxSize")
	case system && hasLeast && least < 1:
		scaling.refuse("minSize", "a pool of the mode System has one node or more", "set it to 1 or more, or mode to User")
	}
	if system && p.word("scaleSetPriority") == "Spot" {
		p.refuse("scaleSetPriority", "a pool of the mode System has no machines that Azure may end at any time",
			"take it away, or set mode to User")
	}
	azureZones(p, "availabilityZones")
}
