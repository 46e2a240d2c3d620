package refused

import (
	"fmt"
	"slices"
	"strings"
)

// The keys of the tags that the provider adds to its resources. One that ends with / goes on with the name of the cluster.
const (
	awsTagName    = "Name"
	awsTagCluster = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	awsTagRole    = "sigs.k8s.io/cluster-api-provider-aws/role"
	awsTagCloud   = "kubernetes.io/cluster/"
)

var (
	// awsNodeGroupTags are those of a node group and of a Fargate profile of EKS.
	awsNodeGroupTags = []string{awsTagCloud}
	awsClusterTags   = []string{awsTagName, awsTagCluster, awsTagRole, awsTagCloud}
	// awsMachineTags are those of an instance.
	awsMachineTags = append(slices.Clip(awsClusterTags), "MachineName")
	// awsPoolTags are those of an instance that a launch template makes.
	awsPoolTags = append(slices.Clip(awsClusterTags), "sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-secret",
		"sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-hash")
)

// awsSubnetTagsOf returns the keys that the provider adds to a public or a private subnet that it makes. Load balancers of Services are
// placed by the last one, which subnets at the edge do not have.
func awsSubnetTagsOf(isPublic, isEdge bool) []string {
	switch {
	case isEdge:
		return awsClusterTags
	case isPublic:
		return append(slices.Clip(awsClusterTags), "kubernetes.io/role/elb")
	}
	return append(slices.Clip(awsClusterTags), "kubernetes.io/role/internal-elb")
}

// eksTags returns the keys that the provider adds to a cluster of EKS, or to the subnets of the VPC that it makes for the cluster. Of a
// template, a ClusterClass may patch in an existing VPC.
func eksTags(p part) []string {
	if p.in("network").in("vpc").has("id") || p.isTemplate() {
		return awsClusterTags
	}
	return awsSubnetTagsOf(true, false)
}

// awsSubnetTags judges the number of tags of the subnets that the provider makes. Such a subnet has its own tags besides all others.
func awsSubnetTags(p part) {
	network := p.in("network")
	if network.in("vpc").has("id") {
		return
	}
	for _, subnet := range network.each("subnets") {
		if subnet.has("tags") {
			own := awsSubnetTagsOf(subnet.has("isPublic"), subnet.isEdge())
			subnet.awsTagCount("tags", own, subnet.in("tags"), p.in("additionalTags"))
		}
	}
}

// awsTagCount judges the number of tags of a resource of AWS: those of all the mappings, of which the first one is in field, and those
// that the provider adds under the keys own. A user's tag with the key of one of those takes its place.
func (p part) awsTagCount(field string, own []string, tags ...part) {
	const limit = 50
	first := len(tags[0].fields)
	if first == 0 {
		return
	}
	keys := map[string]bool{}
	for _, given := range tags {
		for key := range given.fields {
			keys[key] = true
		}
	}
	added := 0
	for _, key := range own {
		if !hasAWSTag(keys, key) {
			added++
		}
	}
	var beside []string
	if others := len(keys) - first; others > 0 {
		beside = append(beside, fmt.Sprintf("%d of additionalTags", others))
	}
	if added > 0 {
		beside = append(beside, fmt.Sprintf("%d that the provider adds", added))
	}
	switch {
	case len(keys)+added <= limit:
	case len(beside) == 0:
		p.refuse(field, fmt.Sprintf("there are %d tags, and AWS takes %d", first, limit), "remove those that nobody looks for")
	default:
		p.refuse(field, fmt.Sprintf("there are %d tags, and AWS takes %d with the %s", first, limit, strings.Join(beside, " and the ")),
			"remove those that nobody looks for")
	}
}

// hasAWSTag tells whether one of the keys is that of the provider's tag own.
func hasAWSTag(keys map[string]bool, own string) bool {
	if !strings.HasSuffix(own, "/") {
		return keys[own]
	}
	for key := range keys {
		if strings.HasPrefix(key, own) {
			return true
		}
	}
	return false
}
