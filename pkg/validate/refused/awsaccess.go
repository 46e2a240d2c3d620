package refused

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

var awsPrincipal = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:(.+)$`)

// awsBucket judges the bucket with the bootstrap data of machines that have Ignition.
func awsBucket(p part) {
	p.duration("presignedURLDuration")
	name, known := p.known("name")
	switch _, err := netip.ParseAddr(name); {
	case !p.has("name"):
		p.refuse("", "a bucket needs a name", "add name")
	case known && err == nil:
		p.refuse("name", "a bucket cannot have an address as its name", "give it another name")
	case known && (strings.HasPrefix(name, "xn--") || strings.HasSuffix(name, "-s3alias") || strings.Contains(name, "..")):
		p.refuse("name", fmt.Sprintf("%.63q is no name of a bucket in AWS", name), "use lower-case letters, digits and -")
	}
	for _, field := range []string{"controlPlaneIAMInstanceProfile", "nodesIAMInstanceProfiles"} {
		if !p.given("presignedURLDuration") && !p.has(field) {
			p.refuse("", "without presignedURLDuration a bucket needs "+field, "add "+field+", or presignedURLDuration")
		}
	}
	for _, role := range p.each("additionalIAMRoles") {
		awsIAM(role, "name", "a role", awsLongestRole)
		if !role.has("prefix") {
			role.refuse("", "a role needs the prefix of the objects that it may read", "add prefix")
		}
		if strings.HasPrefix(role.word("prefix"), "/") {
			role.refuse("prefix", "keys of objects do not begin with /, so the role would read none", "take the / away")
		}
	}
}

// awsControllerIdentity judges the identity of the provider itself, which has a fixed name.
func awsControllerIdentity(p part) {
	if name := p.object.Name; name != "default" && !strings.Contains(name, "${") {
		part{p.object, nil, "metadata", p.report}.refuse("name",
			fmt.Sprintf("there is one such identity alone, which is called default, and this is %.60q", name), "call it default")
	}
}

// eksMappings judges who may use the cluster's API by the old way, a ConfigMap.
func eksMappings(p part) {
	for _, kind := range []struct{ list, arn, is string }{{"mapRoles", "rolearn", "role"}, {"mapUsers", "userarn", "user"}} {
		for _, one := range p.each(kind.list) {
			for _, field := range []string{kind.arn, "username", "groups"} {
				if !one.has(field) {
					one.refuse("", "it needs "+field, "add "+field)
				}
			}
			text, ok := one.known(kind.arn)
			found := awsPrincipal.FindStringSubmatch(text)
			if fits := len(found) > 1 && strings.Contains(found[1], kind.is+"/"); ok && !fits {
				one.refuse(kind.arn, fmt.Sprintf("%.100q is no ARN of a %s", text, kind.is), "write it as arn:aws:iam::ACCOUNT:"+kind.is+"/NAME")
			}
		}
	}
}

// eksSixAddons judges the addons of a cluster with IPv6. Without the VPC CNI in a version that knows IPv6, no pod would get an address.
func eksSixAddons(p part) {
	if !p.in("network").in("vpc").given("ipv6") || !p.has("version") {
		return
	}
	if !p.has("addons") {
		p.refuse("", "a cluster with IPv6 needs addons", "add addons, with vpc-cni, coredns and kube-proxy")
	}
	oldest := version.MustParseGeneric("1.10.2")
	for _, addon := range p.each("addons") {
		text, ok := addon.known("version")
		if addon.word("name") != "vpc-cni" || !ok {
			continue
		}
		switch v, err := version.ParseGeneric(text); {
		case err != nil:
			addon.refuse("version", fmt.Sprintf("%.60q is no version", text), "write it as v1.20.0-eksbuild.1")
		case v.LessThan(oldest):
			addon.refuse("version", "with IPv6, vpc-cni has to be v1.10.2 or later", "take a later version")
		}
	}
}
