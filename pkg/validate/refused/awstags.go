package refused

import "slices"

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

// eksPoolTags returns the keys that the provider adds to a node group of EKS, or to the instances of the group's launch template.
func eksPoolTags(p part) []string {
	if p.given("awsLaunchTemplate") {
		return awsPoolTags
	}
	return awsNodeGroupTags
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
			subnet.tagCount(inAWS, "tags", own, subnet.in("tags"), p.in("additionalTags"))
		}
	}
}

// instanceTags returns the keys of the tags that the provider adds to what it makes of an object for machines.
func instanceTags(p part) []string {
	switch p.object.Kind {
	case "AWSMachinePool":
		return awsPoolTags
	case "AWSManagedMachinePool":
		return eksPoolTags(p)
	}
	return awsMachineTags
}
