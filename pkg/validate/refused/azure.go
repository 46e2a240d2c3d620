package refused

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

var (
	azureClusterName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,42}[a-z0-9]$`)
	azureName        = regexp.MustCompile(`^[-\w.]+$`)
	azureGroup       = regexp.MustCompile(`^[-\w.()]+$`)
	azureResource    = regexp.MustCompile(`(?i)^(azure://)?/?subscriptions/.+/resourceGroups/.+/providers/.+/.+/.+`)
)

func azureCluster(p part) {
	if name := p.object.Name; !strings.Contains(name, "${") && !azureClusterName.MatchString(name) {
		part{p.object, nil, "metadata", p.report}.refuse("name", fmt.Sprintf("%.80q cannot begin the names of machines in Azure", name),
			"name the cluster with 2 to 44 lower-case letters, digits and -, that begin and end with a letter or digit")
	}
	identity := p.in("identityRef")
	switch kind := identity.word("kind"); {
	case !p.given("identityRef"):
		p.refuse("", "a cluster needs an identity", "add identityRef, with the name of an AzureClusterIdentity")
	case kind != "" && kind != "AzureClusterIdentity":
		identity.refuse("kind", kind+" is no identity for a cluster", "name an AzureClusterIdentity")
	}
	if bastion := p.in("bastionSpec").in("azureBastion"); bastion.has("enableTunneling") && bastion.word("sku") != "Standard" {
		bastion.refuse("enableTunneling", "only a bastion of the sku Standard can tunnel", "set sku to Standard")
	}
	azureRegion(p)
	azureAccount(p, "resourceGroup")
	azureTags(p, azureClusterTags)
	azureNetwork(p, p.in("networkSpec"))
}

func azureNetwork(cluster, p part) {
	vnet := p.in("vnet")
	peerings := map[string]bool{}
	for _, peering := range vnet.each("peerings") {
		key := peering.word("resourceGroup") + "/" + peering.word("remoteVnetName")
		if peerings[key] {
			peering.refuse("remoteVnetName", "there is another peering with this network", "remove one of the two")
		}
		peerings[key] = true
	}
	if group, ok := vnet.known("resourceGroup"); ok && !azureGroup.MatchString(group) {
		vnet.refuse("resourceGroup", fmt.Sprintf("%.90q is no name of a resource group", group), "write it as `az group list` has it")
	}
	azureSubnets(cluster, p, vnet)
	if cluster.fields["controlPlaneEnabled"] != false { // otherwise the provider makes none
		azureBalancer(p)
	}
	azureOutbound(p)
}

// azureSubnets judges the subnets. The provider adds missing subnets to a network that it makes. For an existing network it needs all of
// them.
func azureSubnets(cluster, p, vnet part) {
	ranges := vnet.networks("cidrBlocks")
	var taken []netip.Prefix
	names, roles := map[string]bool{}, map[string]bool{}
	subnets := p.each("subnets")
	for _, subnet := range subnets {
		name, known := subnet.known("name")
		switch {
		case known && !azureName.MatchString(name):
			subnet.refuse("name", fmt.Sprintf("%.80q is no name of a subnet", name), "use letters, digits, - . and _")
		case known && names[name]:
			subnet.refuse("name", "another subnet has this name", "give each its own")
		}
		names[name] = true
		roles[subnet.word("role")] = true
		if vnet.has("resourceGroup") || len(ranges) > 0 {
			for _, prefix := range subnet.networks("cidrBlocks") {
				if len(ranges) > 0 && !slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return within(prefix, r) }) {
					subnet.refuse("cidrBlocks", fmt.Sprintf("%s is not within the network's own ranges (vnet.cidrBlocks)", prefix),
						"give the subnet a part of these")
				}
			}
		}
		azureRanges(subnet, &taken)
		azureRules(subnet.in("securityGroup"))
		azureEndpoints(subnet)
	}
	if len(subnets) == 0 || !vnet.has("resourceGroup") || roles["cluster"] {
		return
	}
	needed := []string{"node"}
	if enabled, is := cluster.fields["controlPlaneEnabled"].(bool); !is || enabled {
		needed = append(needed, "control-plane")
	}
	for _, role := range needed {
		if !roles[role] {
			p.refuse("subnets", "an existing network needs a subnet with the role "+role,
				"add it, or one with the role cluster for both")
		}
	}
}

func azureRules(group part) {
	const least, most = 100, 4096
	taken := map[string]bool{}
	for _, rule := range group.each("securityRules") {
		rule.together("source", "sources")
		azureTraffic(rule)
		if priority, ok := rule.number("priority"); ok && (priority < least || priority > most) {
			rule.refuse("priority", fmt.Sprintf("%.0f is not between %d and %d", priority, least, most), "give one that Azure takes")
		} else if key := fmt.Sprint(rule.word("direction"), priority); ok {
			if taken[key] {
				rule.refuse("priority", fmt.Sprintf("another rule of this direction has %.0f, too", priority), "give each its own")
			}
			taken[key] = true
		}
	}
}

// azureBalancer judges the load balancer of the API server.
func azureBalancer(p part) {
	balancer := p.in("apiServerLB")
	if name, ok := balancer.known("name"); ok && !azureName.MatchString(name) {
		balancer.refuse("name", fmt.Sprintf("%.80q is no name of a load balancer", name), "use letters, digits, - . and _")
	}
	internal, addresses := balancer.word("type") == "Internal", balancer.each("frontendIPs")
	for _, address := range addresses {
		if internal && address.given("publicIP") {
			address.refuse("publicIP", "an internal load balancer has no public address", "take it away, or set type to Public")
		}
		text, known := address.known("privateIP")
		if !internal || !known {
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil {
			address.refuse("privateIP", fmt.Sprintf("%.50q is no address", text), "write one of the control plane's subnet")
			continue
		}
		var ranges []netip.Prefix
		for _, subnet := range p.each("subnets") {
			if role := subnet.word("role"); role == "control-plane" || role == "cluster" {
				blocks, _ := subnet.fields["cidrBlocks"].([]any)
				for _, block := range blocks {
					if prefix, err := netip.ParsePrefix(fmt.Sprint(block)); err == nil {
						ranges = append(ranges, prefix)
					}
				}
			}
		}
		if len(ranges) > 0 && !slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(ip) }) {
			address.refuse("privateIP", text+" is not in the control plane's subnet", "take an address of its cidrBlocks")
		} else if slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return azureKeeps(r, ip) }) {
			address.refuse("privateIP", "Azure keeps the first four addresses of a subnet and its last one, and "+text+" is one of them",
				"take another address of the subnet")
		}
	}
	azureAddresses(balancer, addresses)
	if p.has("privateDNSZoneName") && !internal {
		p.refuse("privateDNSZoneName", "a private zone is for an internal load balancer", "set apiServerLB.type to Internal, or take it away")
	}
	if p.has("privateDNSZoneResourceGroup") && !p.has("privateDNSZoneName") {
		p.refuse("privateDNSZoneResourceGroup", "it needs privateDNSZoneName", "add privateDNSZoneName, or take it away")
	}
}

func azureMachine(p part) {
	azureTags(p, azureMachineTags)
	azureVM(p)
	azureNICs(p)
	if p.isTemplate() {
		if p.has("roleAssignmentName") {
			p.refuse("roleAssignmentName", "a template cannot have it: each machine has its own", "take it away")
		}
		if p.in("systemAssignedIdentityRole").has("name") {
			p.in("systemAssignedIdentityRole").refuse("name", "a template cannot have it: each machine has its own", "take it away")
		}
		if p.given("providerID") {
			p.refuse("providerID", "a template cannot have it: each machine has its own", "take it away")
		}
	}
	if identity := p.word("identity"); p.given("systemAssignedIdentityRole") && identity != "SystemAssigned" {
		p.refuse("systemAssignedIdentityRole", "it is for machines with identity SystemAssigned",
			"set identity to SystemAssigned, or take it away")
	}
}

// cmpField returns the first of two fields that is set.
func cmpField(p part, first, second string) string {
	if p.given(first) {
		return first
	}
	return second
}

// azureVM judges what single machines and machine pools have in common.
func azureVM(p part) {
	azureSize(p, "vmSize")
	azurePrice(p.in("spotVMOptions"), "maxPrice")
	azureImage(p)
	azureConfidential(p)
	azureOSDisk(p.in("osDisk"), p.given("osDisk"))
	azureDisks(p)
	if key, ok := p.known("sshPublicKey"); ok {
		azureSSHKey(p, key)
	}
	if p.object.Kind != "AzureMachinePool" {
		if users := p.has("userAssignedIdentities"); users != (p.word("identity") == "UserAssigned") {
			p.refuse(cmpField(p, "userAssignedIdentities", "identity"),
				"identity UserAssigned and userAssignedIdentities go together", "write both, or none")
		}
	}
	for _, identity := range p.each("userAssignedIdentities") {
		if id, ok := identity.known("providerID"); ok && !azureResource.MatchString(id) {
			identity.refuse("providerID", "it is no id of a resource",
				"write /subscriptions/…/resourceGroups/…/providers/Microsoft.ManagedIdentity/userAssignedIdentities/NAME")
		}
	}
	if id, ok := p.known("capacityReservationGroupID"); ok && !azureResource.MatchString(id) {
		p.refuse("capacityReservationGroupID", "it is no id of a resource",
			"write /subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/capacityReservationGroups/NAME")
	}
	if p.has("disableExtensionOperations") && p.has("vmExtensions") {
		p.refuse("vmExtensions", "disableExtensionOperations is true", "remove one of the two")
	}
	boot := p.in("diagnostics").in("boot")
	switch kind, managed := boot.word("storageAccountType"), boot.in("userManaged").has("storageAccountURI"); {
	case kind == "UserManaged" && !managed:
		boot.refuse("storageAccountType", "a storage account of yours needs its address", "add userManaged.storageAccountURI")
	case (kind == "Managed" || kind == "Disabled") && managed:
		boot.refuse("storageAccountType", kind+" has no storage account of yours", "take userManaged away, or set it to UserManaged")
	}
}

func azureSSHKey(p part, key string) {
	decoded, err := base64.StdEncoding.DecodeString(key)
	if err == nil {
		_, _, _, _, err = ssh.ParseAuthorizedKey(decoded)
	}
	if err != nil {
		p.refuse("sshPublicKey", "it is no public key in base64", "make it with `base64 -w0 id_ed25519.pub`")
	}
}

func azureOSDisk(p part, there bool) {
	const most = 2048
	if !there {
		return
	}
	if size, ok := p.number("diskSizeGB"); ok && (size <= 0 || size > most) {
		p.refuse("diskSizeGB", fmt.Sprintf("%.0f is not between 1 and %d", size, most), "give a size that Azure has for the disk of the system")
	}
	if !p.has("osType") {
		p.refuse("", "a disk of the system needs osType", "add osType: Linux")
	}
	disk := p.in("managedDisk")
	if disk.word("storageAccountType") == "UltraSSD_LRS" {
		disk.refuse("storageAccountType", "an ultra disk cannot be the disk of the system", "set it to Premium_LRS")
	}
	azureDisk(p)
	local := p.in("diffDiskSettings")
	if p.given("diffDiskSettings") && disk.given("diskEncryptionSet") {
		disk.refuse("diskEncryptionSet", "a disk that ends with its machine (diffDiskSettings) has none", "remove one of the two")
	}
	if local.has("placement") && local.word("option") != "Local" {
		local.refuse("placement", "it is for the option Local", "set option to Local")
	}
}

// azureDisk judges what disks of all kinds have in common.
func azureDisk(p part) {
	kinds := []string{"Premium_LRS", "PremiumV2_LRS", "Premium_ZRS", "StandardSSD_LRS", "StandardSSD_ZRS", "Standard_LRS", "UltraSSD_LRS"}
	kind, known := p.in("managedDisk").known("storageAccountType")
	if known && !slices.Contains(kinds, kind) {
		p.in("managedDisk").refuse("storageAccountType", fmt.Sprintf("Azure has no disks of type %.40s", kind),
			"take one of these: "+strings.Join(kinds, ", "))
	}
	switch caching, known := p.known("cachingType"); {
	case known && !slices.Contains([]string{"None", "ReadOnly", "ReadWrite"}, caching):
		p.refuse("cachingType", fmt.Sprintf("%.40q is no way to cache", caching), "take one of these: None, ReadOnly, ReadWrite")
	case known && caching != "None" && kind == "UltraSSD_LRS":
		p.refuse("cachingType", "an ultra disk is not cached", "set it to None")
	}
}

func azureDisks(p part) {
	const smallest, largest, lastUnit = 4, 32767, 63
	names, units := map[string]bool{}, map[float64]bool{}
	for _, disk := range p.each("dataDisks") {
		azureDisk(disk)
		if size, ok := disk.number("diskSizeGB"); ok && (size < smallest || size > largest) {
			disk.refuse("diskSizeGB", fmt.Sprintf("%.0f is not between %d and %d", size, smallest, largest), "give a size that Azure has")
		}
		switch name := disk.word("nameSuffix"); {
		case name == "":
			disk.refuse("", "a disk needs nameSuffix", "add nameSuffix")
		case names[name]:
			disk.refuse("nameSuffix", "another disk has it, too", "give each its own")
		default:
			names[name] = true
		}
		switch unit, ok := disk.number("lun"); {
		case !ok: // the provider chooses one
		case unit < 0 || unit > lastUnit:
			disk.refuse("lun", fmt.Sprintf("%.0f is not between 0 and %d", unit, lastUnit), "give one that Azure takes")
		case units[unit]:
			disk.refuse("lun", "another disk has it, too", "give each its own")
		default:
			units[unit] = true
		}
	}
}

func azureNICs(p part) {
	interfaces := p.each("networkInterfaces")
	for _, field := range []string{"subnetName", "acceleratedNetworking"} {
		if len(interfaces) > 0 && p.given(field) && p.fields[field] != "" {
			p.refuse(field, "each of networkInterfaces has its own", "take it away, or networkInterfaces")
		}
	}
	for _, one := range interfaces {
		if n, ok := one.number("privateIPConfigs"); ok && n < 1 {
			one.refuse("privateIPConfigs", "an interface needs an address", "give 1 or more")
		}
	}
}
