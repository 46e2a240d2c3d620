package refused

import (
	"fmt"
	"regexp"
	"time"
)

var (
	// rosaVersion matches a semantic version without a leading v.
	rosaVersion = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	rosaKMSKey  = regexp.MustCompile(
		`^arn:aws[\w-]*:kms:[\w-]+:\d{12}:key/(mrk-[0-9a-f]{32}$|[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$)`)
)

// rosaRoles are the fields with the roles of a cluster. Below rolesRef are the fields with the roles of its operators.
var (
	rosaRoles = []string{"oidcID", "installerRoleARN", "supportRoleARN", "workerRoleARN"}
	rosaRefs  = []string{
		"ingressARN", "imageRegistryARN", "storageARN", "networkARN", "kubeCloudControllerARN", "nodePoolManagementARN",
		"controlPlaneOperatorARN", "kmsProviderARN",
	}
)

func rosaControlPlane(p part) {
	awsTags(p, nil)
	awsRegion(p, "region")
	rosaVersionOf(p)
	if key, ok := p.known("etcdEncryptionKMSARN"); ok && !rosaKMSKey.MatchString(key) {
		p.refuse("etcdEncryptionKMSARN", fmt.Sprintf("%.120q is no ARN of a key", key),
			"take it from `aws kms describe-key`: …:key/ID, and no alias")
	}
	if p.word("fips") == "Enabled" && !p.has("etcdEncryptionKMSARN") {
		p.refuse("fips", "it needs a key of yours for etcd", "add etcdEncryptionKMSARN, of a key with the tag red-hat:true")
	}
	if p.has("externalAuthProviders") && !p.has("enableExternalAuthProviders") {
		p.refuse("externalAuthProviders", "they are not enabled", "set enableExternalAuthProviders to true, or take it away")
	}
	if sources := p.in("clusterRegistryConfig").in("registrySources"); sources.has("allowedRegistries") && sources.has("blockedRegistries") {
		sources.refuse("blockedRegistries", "it cannot be set together with allowedRegistries", "remove one of the two")
	}
	for _, field := range []string{"machineCIDR", "podCIDR", "serviceCIDR"} {
		p.in("network").network(field)
	}
	rosaRolesOf(p)
	rosaNetworkOf(p)
}

// rosaRolesOf judges the roles. A cluster names either each role, or an object that makes them.
func rosaRolesOf(p part) {
	refs := p.in("rolesRef")
	if p.given("rosaRoleConfigRef") {
		for _, field := range append([]string{"trustPolicyExternalID"}, rosaRoles...) {
			if p.has(field) {
				p.refuse(field, "the roles are those of rosaRoleConfigRef", "remove one of the two")
			}
		}
		for _, field := range rosaRefs {
			if refs.has(field) {
				refs.refuse(field, "the roles are those of rosaRoleConfigRef", "remove one of the two")
			}
		}
		return
	}
	const hint = "add it, or rosaRoleConfigRef with the name of a ROSARoleConfig in place of all roles"
	for _, field := range rosaRoles {
		if !p.has(field) {
			p.refuse("", "a cluster needs "+field, hint)
			return
		}
	}
	for _, field := range rosaRefs {
		if !refs.has(field) {
			p.refuse("rolesRef", "a cluster needs "+field, hint)
			return
		}
	}
}

// rosaNetworkOf judges the network. A cluster names either its subnets, or an object that makes them.
func rosaNetworkOf(p part) {
	for _, field := range []string{"subnets", "availabilityZones"} {
		switch made := p.given("rosaNetworkRef"); {
		case made && p.given(field):
			p.refuse(field, "the network is that of rosaNetworkRef", "remove one of the two")
		case !made && !p.given(field):
			p.refuse("", "a cluster needs "+field, "add "+field+", or rosaNetworkRef with the name of a ROSANetwork")
			return
		}
	}
}

func rosaVersionOf(p part) {
	if version, ok := p.known("version"); ok && !rosaVersion.MatchString(version) {
		p.refuse("version", fmt.Sprintf("%.80q is no version of OpenShift", version), "write all three numbers without a v, as in 4.19.3")
	}
}

func rosaPool(p part) {
	const longest = 7 * 24 * time.Hour
	awsTags(p, nil)
	rosaVersionOf(p)
	if d, err := time.ParseDuration(p.word("nodeDrainGracePeriod")); err == nil && d > longest {
		p.refuse("nodeDrainGracePeriod", "it is more than a week", "give a week, 168h, or less")
	}
}
