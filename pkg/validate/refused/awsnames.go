package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	awsIAMName = regexp.MustCompile(`^[\w+=,.@-]+$`)
	awsKeyARN  = regexp.MustCompile(`^arn:(aws[a-z-]*):kms:([a-z0-9-]+):[0-9]{12}:(key|alias)/\S+$`)
)

// The longest names of roles and of instance profiles in IAM.
const awsLongestRole, awsLongestProfile = 64, 128

// awsIAM judges the name of a role or of an instance profile, for which the provider takes no ARN and no path.
func awsIAM(p part, field, what string, longest int) {
	name, ok := p.known(field)
	switch {
	case !ok:
	case strings.HasPrefix(name, "arn:"):
		p.refuse(field, "it is an ARN, and the provider takes the name of "+what, "write what stands after the last / of the ARN")
	case !awsIAMName.MatchString(name) || len(name) > longest:
		p.refuse(field, fmt.Sprintf("%.80q is no name of %s in AWS", name, what),
			fmt.Sprintf("use 1 to %d letters, digits and _ + = , . @ -, without a path", longest))
	}
}

// awsKey judges the ARN of a KMS key, which must be in the given region, if that is known. A disk may name its key in other ways, too.
func awsKey(p part, field, region string) {
	text, ok := p.known(field)
	if !ok || !strings.HasPrefix(text, "arn:") {
		return
	}
	found := awsKeyARN.FindStringSubmatch(text)
	if found == nil {
		p.refuse(field, fmt.Sprintf("%.100q is no ARN of a key", text), "write it as arn:aws:kms:REGION:ACCOUNT:key/ID")
		return
	}
	partition, place := found[1], found[2]
	switch needed := awsPartition(place); {
	case needed != "" && partition != needed:
		p.refuse(field, fmt.Sprintf("an ARN of the region %.40s begins with arn:%s:", place, needed), "take it from `aws kms describe-key`")
	case region != "" && !strings.Contains(region, "${") && place != region:
		p.refuse(field, fmt.Sprintf("the key is of the region %.40s, and AWS takes only a key of the region %.40s", place, region),
			"take a key of this region")
	}
}

// awsPartition is the partition of AWS that a region belongs to; "" if fleetctl does not know it.
func awsPartition(region string) string {
	for prefix, partition := range map[string]string{"cn-": "aws-cn", "us-gov-": "aws-us-gov"} {
		if strings.HasPrefix(region, prefix) {
			return partition
		}
	}
	if strings.Contains(region, "-iso") || strings.HasPrefix(region, "eusc-") {
		return ""
	}
	return "aws"
}

// awsSources judges the networks that a rule of a security group lets in. AWS sets the bits after the prefix to zero. The provider then
// does not recognise its rule, and removes and makes it again each time it reconciles. AWS accepts no network twice.
func awsSources(p part, field string) {
	p.networks(field)
	seen := map[netip.Prefix]bool{}
	for at, prefix := range p.ranges(field) {
		switch own := prefix.Masked(); {
		case own != prefix:
			p.refuse(at, fmt.Sprintf("AWS makes %s of %s, so the provider would remove the rule and make it again forever", own, prefix),
				fmt.Sprintf("write %s", own))
		case seen[own]:
			p.refuse(at, own.String()+" stands here twice, and AWS takes each network once", "remove one of the two")
		default:
			seen[own] = true
		}
	}
}

// eksAddons judges the addons of a cluster. AWS takes their settings as JSON or YAML.
func eksAddons(p part) {
	var names []string
	for _, addon := range p.each("addons") {
		addon.once("cluster addon", &names, 0)
		text, ok := addon.known("configuration")
		if err := yaml.Unmarshal([]byte(text), &map[string]any{}); ok && err != nil {
			addon.refuse("configuration", "it is neither JSON nor YAML with fields",
				"write what `aws eks describe-addon-configuration` says, as a text")
		}
	}
}

// eksPublic judges the networks that may reach the public address of the API server. EKS accepts no private networks.
func eksPublic(p part) {
	p.networks("publicCIDRs")
	for at, prefix := range p.ranges("publicCIDRs") {
		if a := prefix.Addr(); a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() {
			p.refuse(at, fmt.Sprintf("%s is not public, and nobody reaches the public address from it: EKS does not take it", prefix),
				"name the public addresses that clients come from, or set private to true for clients within the VPC")
		}
	}
}

// eksLabels judges labels of nodes. EKS reserves some of them.
func eksLabels(p part) {
	for _, key := range p.in("labels").names() {
		for _, kept := range []string{"kubernetes.io/", "k8s.io/", "eks.amazonaws.com/"} {
			if strings.HasPrefix(key, kept) {
				p.refuse("labels", fmt.Sprintf("the label %.80s begins with %s, which EKS keeps for itself", key, kept), "give it another key")
			}
		}
	}
}

func eksFargate(p part) {
	awsTags(p, awsNodeGroupTags)
	awsIAM(p, "roleName", "a role", awsLongestRole)
}
