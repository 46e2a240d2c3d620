package refused

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

var (
	awsTagText = regexp.MustCompile(`^[a-zA-Z0-9\s_.:=+\-@/]*$`)
	awsSession = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
	awsType    = regexp.MustCompile(`^[a-z][a-z0-9-]*\.[a-z0-9-]+$`)
	awsKeyName = regexp.MustCompile(`^[[:graph:]]+([[:print:]]*[[:graph:]]+)*$`)
)

// awsTags judges the tags of all resources that the provider makes for an object. own are the keys of the tags that the provider adds to
// the resource with most of them.
func awsTags(p part, own []string) {
	const longestKey, longestValue = 128, 256
	tags := p.in("additionalTags")
	p.tagCount(inAWS, "additionalTags", own, tags)
	for _, key := range slices.Sorted(maps.Keys(tags.fields)) {
		value := tags.word(key)
		switch {
		case strings.Contains(key+value, "${"):
		case key == "" || len(key) > longestKey:
			p.refuse("additionalTags", fmt.Sprintf("the key %.40q has %d characters, and AWS takes 1 to %d", key, len(key), longestKey),
				"give the tag another key")
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			p.refuse("additionalTags", fmt.Sprintf("the key %.80q begins with aws:, which only AWS may use", key), "give the tag another key")
		case !awsTagText.MatchString(key):
			p.refuse("additionalTags", fmt.Sprintf("the key %.80q has characters that AWS does not take", key),
				"use letters, digits, spaces and _ . : / = + - @")
		case len(value) > longestValue:
			tags.refuse(key, fmt.Sprintf("the value has %d characters, and AWS takes %d", len(value), longestValue), "shorten it")
		case !awsTagText.MatchString(value):
			tags.refuse(key, "the value has characters that AWS does not take", "use letters, digits, spaces and _ . : / = + - @")
		}
	}
}

func awsSSHKey(p part) {
	if name, ok := p.known("sshKeyName"); ok && !awsKeyName.MatchString(name) {
		p.refuse("sshKeyName", "the name of a key pair begins and ends with a character that is no space, and has ASCII alone",
			"write the name as `aws ec2 describe-key-pairs` has it")
	}
}

// awsInstanceType checks only the form of a machine type, because AWS adds types every month.
func awsInstanceType(p part) {
	if name, ok := p.known("instanceType"); ok && !awsType.MatchString(name) {
		p.refuse("instanceType", fmt.Sprintf("%.60q is no type of a machine in AWS", name), "write a family and a size, as in m7i.large")
	}
}

// awsVolume judges a disk; least and most are the throughput that the provider takes.
func awsVolume(p part, least, most float64) {
	awsKey(p, "encryptionKey", "")
	kind, iops := p.word("type"), p.has("iops")
	if (kind == "io1" || kind == "io2") && !iops {
		p.refuse("type", "a volume of type "+kind+" needs iops", "add iops, or take type gp3")
	}
	throughput, ok := p.number("throughput")
	switch {
	case !ok:
	case kind != "gp3":
		p.refuse("throughput", "only a volume of type gp3 has a throughput", "set type to gp3, or take throughput away")
	case throughput < least || throughput > most:
		p.refuse("throughput", fmt.Sprintf("%.0f is not between %.0f and %.0f MiB/s", throughput, least, most), "give one that AWS has")
	}
}

func awsVolumes(p part) {
	if p.has("rootVolume") {
		awsVolume(p.in("rootVolume"), 125, 2000)
		awsDisk(p.in("rootVolume"), true)
	}
	names := map[string]bool{}
	for _, volume := range p.each("nonRootVolumes") {
		awsVolume(volume, 0, 2000)
		awsDisk(volume, false)
		switch name := volume.word("deviceName"); {
		case name == "":
			volume.refuse("", "a volume that is not the root volume needs a deviceName", "add one that the AMI does not use, such as /dev/sdb")
		case names[name]:
			volume.refuse("deviceName", fmt.Sprintf("another volume has the device name %.80s, too", name), "give each its own")
		default:
			names[name] = true
		}
	}
}

// awsSelectors judges references to resources in AWS, by id or by filters.
func awsSelectors(p part, field string) {
	for _, one := range p.each(field) {
		if one.has("id") && one.has("filters") {
			one.refuse("filters", "it names the same thing by id and by filters", "remove one of the two")
		}
	}
}

func awsMachine(p part) {
	awsTags(p, awsMachineTags)
	p.in("dynamicHostAllocation").tagCount(inAWS, "tags", nil, p.in("dynamicHostAllocation").in("tags"), p.in("additionalTags"))
	awsInstanceType(p)
	awsMachineIDs(p)
	awsSSHKey(p)
	awsIAM(p, "iamInstanceProfile", "an instance profile", awsLongestProfile)
	awsVolumes(p)
	awsSelectors(p, "additionalSecurityGroups")
	awsUserData(p)
	awsPlacement(p)
	if p.isTemplate() && p.given("providerID") {
		p.refuse("providerID", "a template cannot have it: each machine has its own", "take it away")
	}
	if pool := p.in("elasticIpPool"); p.has("elasticIpPool") {
		if !p.has("publicIP") {
			p.refuse("elasticIpPool", "addresses of a pool are for machines with publicIP", "set publicIP to true, or take elasticIpPool away")
		}
		awsAddressPool(pool)
	}
}

// awsUserData judges how a machine gets its bootstrap data.
func awsUserData(p part) {
	init := p.in("cloudInit")
	for _, field := range []string{"secretPrefix", "secretCount"} {
		switch {
		case !init.has(field):
		case p.isTemplate():
			init.refuse(field, "a template cannot have it: the provider sets it on each machine", "take it away")
		case init.has("insecureSkipSecretsManager"):
			init.refuse(field, "there is no secret where insecureSkipSecretsManager is true", "remove one of the two")
		}
	}
	if !p.isTemplate() && init.has("secretPrefix") != init.has("secretCount") {
		init.refuse("", "secretPrefix and secretCount go together", "remove the existing one: the provider sets both")
	}
	if init.has("insecureSkipSecretsManager") && init.has("secureSecretsBackend") {
		init.refuse("secureSecretsBackend", "no backend is used where insecureSkipSecretsManager is true", "remove one of the two")
	}
	if !p.given("ignition") {
		return
	}
	if slices.ContainsFunc([]string{"secretPrefix", "secretCount", "secureSecretsBackend", "insecureSkipSecretsManager"}, init.has) {
		p.refuse("cloudInit", "a machine with ignition has no cloudInit", "remove one of the two")
	}
	ignition := p.in("ignition")
	if version := ignition.word("version"); version == "2.3" || version == "3.0" {
		for _, field := range []string{"proxy", "tls"} {
			if ignition.given(field) {
				ignition.refuse(field, "Ignition "+version+" does not know it", "set version to 3.1 or later")
			}
		}
	}
}

// awsPlacement judges the host and the market type of a machine.
func awsPlacement(p part) {
	p.together("hostID", "dynamicHostAllocation")
	onHost := p.word("tenancy") == "host"
	for _, field := range []string{"hostID", "dynamicHostAllocation"} {
		if p.given(field) && !onHost {
			p.refuse(field, "only a machine with tenancy host has a host of its own", "set tenancy to host, or take "+field+" away")
		}
	}
	if p.word("hostAffinity") == "host" && !onHost {
		p.refuse("hostAffinity", "only a machine with tenancy host can stay on its host", "set tenancy to host, or hostAffinity to default")
	}
	if p.given("dynamicHostAllocation") && p.word("hostAffinity") != "host" {
		p.refuse("dynamicHostAllocation", "a host that is allocated needs hostAffinity host, so that its machine stays on it",
			"set hostAffinity to host")
	}
	awsMarket(p)
}

func awsMarket(p part) {
	const only = "CapacityReservationsOnly"
	market, preference := p.word("marketType"), p.word("capacityReservationPreference")
	awsSpot(p)
	if (market == "OnDemand" || market == "CapacityBlock") && p.given("spotMarketOptions") {
		p.refuse("marketType", market+" and spotMarketOptions exclude each other", "take spotMarketOptions away, or set marketType to Spot")
	}
	if market == "CapacityBlock" && !p.has("capacityReservationId") {
		p.refuse("marketType", "CapacityBlock needs the reservation's id", "add capacityReservationId")
	}
	if p.has("capacityReservationId") && preference != "" && preference != only {
		p.refuse("capacityReservationPreference", "with capacityReservationId it can only be "+only, "take one of the two away")
	}
	if preference == only && (market == "Spot" || p.given("spotMarketOptions")) {
		p.refuse("capacityReservationPreference", "a spot machine cannot be of a reservation only",
			"take it away, or the options of spot machines")
	}
}

// awsAddressPool judges a pool of public addresses.
func awsAddressPool(p part) {
	const prefix, field, fallback = "ipv4pool-ec2-", "publicIpv4Pool", "publicIpv4PoolFallbackOrder"
	switch pool, known := p.known(field); {
	case p.has(field) && !p.has(fallback):
		p.refuse(field, "it needs "+fallback, "add "+fallback+": amazon-pool, or none")
	case known && !strings.HasPrefix(pool, prefix):
		p.refuse(field, "the id of a pool begins with "+prefix, "take it from `aws ec2 describe-public-ipv4-pools`")
	case !p.has(field) && p.has(fallback):
		p.refuse(fallback, "there is no "+field+" to fall back from", "take it away, or add "+field)
	}
}

func awsRoleIdentity(p part) {
	if !p.given("sourceIdentityRef") {
		p.refuse("", "a role needs an identity that takes it on",
			"add sourceIdentityRef, such as {kind: AWSClusterControllerIdentity, name: default}")
	}
	if name, ok := p.known("sessionName"); ok && !awsSession.MatchString(name) {
		p.refuse("sessionName", fmt.Sprintf("%.80q is no name of a session in AWS", name), "use 2 to 64 letters, digits and _ + = , . @ -")
	}
	if id, ok := p.known("externalID"); ok && !scaffold.IsExternalID(id) {
		p.refuse("externalID", fmt.Sprintf("%.80q is no external ID in AWS", id), "use 2 to 1224 letters, digits and _ + = , . @ : / -")
	}
}

func awsCluster(p part) {
	awsTags(p, awsMachineTags) // each machine of the cluster has the tags of the cluster, too
	awsSubnetTags(p)
	awsSSHKey(p)
	awsBastion(p.in("bastion"))
	awsRegion(p, "region")
	awsNetwork(p.in("network"), p.word("region"))
	awsBalancers(p)
	if p.given("s3Bucket") {
		awsBucket(p.in("s3Bucket"))
	}
}

func awsBastion(p part) {
	if p.has("disableIngressRules") && p.has("allowedCIDRBlocks") {
		p.refuse("allowedCIDRBlocks", "nobody is let in where disableIngressRules is true", "remove one of the two")
		return
	}
	awsSources(p, "allowedCIDRBlocks")
}

// awsBalancers judges the load balancers of the API server.
func awsBalancers(p part) {
	first, second := p.in("controlPlaneLoadBalancer"), p.in("secondaryControlPlaneLoadBalancer")
	awsBalancer(p, first)
	if first.word("loadBalancerType") == "disabled" {
		for _, field := range []string{
			"name", "crossZoneLoadBalancing", "subnets", "healthCheckProtocol", "additionalSecurityGroups", "additionalListeners",
			"ingressRules", "preserveClientIP",
			"disableHostsRewrite", "targetGroupIPType",
		} {
			if first.has(field) {
				first.refuse(field, "the load balancer is disabled, so nothing of it can be set", "take it away, or set loadBalancerType to nlb")
			}
		}
	}
	if !p.given("secondaryControlPlaneLoadBalancer") {
		return
	}
	awsBalancer(p, second)
	scheme := func(b part) string { return cmp.Or(b.word("scheme"), "internet-facing") }
	switch {
	case !p.given("controlPlaneLoadBalancer"):
		p.refuse("secondaryControlPlaneLoadBalancer", "a second load balancer needs a first one", "add controlPlaneLoadBalancer")
	case scheme(first) == scheme(second):
		second.refuse("scheme", "both load balancers are "+scheme(first),
			"set the scheme of one to internal, and that of the other one to internet-facing")
	}
	switch {
	case !second.has("name"):
		second.refuse("", "a second load balancer needs a name", "add name")
	case second.word("name") == first.word("name"):
		second.refuse("name", "both load balancers have this name", "give each its own")
	}
	if second.word("loadBalancerType") != "nlb" {
		second.refuse("loadBalancerType", "a second load balancer is a network load balancer", "set loadBalancerType to nlb")
	}
}

func awsBalancer(cluster, p part) {
	if name, ok := p.known("name"); ok && strings.HasPrefix(name, "internal-") {
		p.refuse("name", fmt.Sprintf("%.40q begins with internal-, which only AWS may use for load balancers", name), "give it another name")
	}
	awsIngress(p, "ingressRules")
	listeners := p.each("additionalListeners")
	for _, target := range slices.Concat([]part{p}, listeners) {
		switch {
		case !target.given("targetGroupIPType"):
		case slices.Contains([]string{"", "classic"}, p.word("loadBalancerType")):
			target.refuse("targetGroupIPType", "a classic load balancer has no target groups", "set loadBalancerType to nlb, or take it away")
		case target.word("targetGroupIPType") == "ipv6" && !cluster.in("network").in("vpc").given("ipv6"):
			target.refuse("targetGroupIPType", "ipv6 needs a VPC that has it", "add network.vpc.ipv6, or take it away")
		}
	}
}
