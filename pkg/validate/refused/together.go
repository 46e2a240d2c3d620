package refused

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// Object is an object with its content.
type Object struct {
	*render.Object
	Content map[string]any
}

// spec returns the part of the object that machines or clusters are made from.
func (o Object) spec(report func(field, summary, hint string)) part {
	p := part{o.Object, o.Content, "", report}.in("spec")
	if p.isTemplate() {
		p = p.in("template").in("spec")
	}
	return p
}

// IsManagedElsewhere tells whether the object has Cluster API's annotation of infrastructure that something other than the provider makes.
func (o Object) IsManagedElsewhere() bool { return o.isAnnotated("cluster.x-k8s.io/managed-by") }

// isAnnotated tells whether the object has an annotation with any value.
func (o Object) isAnnotated(key string) bool {
	_, is, _ := unstructured.NestedString(o.Content, "metadata", "annotations", key)
	return is
}

// IsJudgedTogether tells whether JudgeMachines or JudgeCluster judges an object of this kind.
func IsJudgedTogether(o *render.Object) bool {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	// As in Judge, the kinds of vSphere's supervisor are others of the same names.
	return strings.HasSuffix(group, ".cluster.x-k8s.io") && !strings.HasPrefix(group, "vmware.") && slices.Contains([]string{
		"AWSCluster", "AWSManagedControlPlane", "AWSMachine", "AWSMachineTemplate", "AWSMachinePool", "AWSManagedMachinePool",
		"AzureCluster", "AzureMachine", "AzureMachineTemplate", "AzureMachinePool", "AzureManagedMachinePool", "AzureASOManagedMachinePool",
		"GCPCluster", "GCPMachine", "GCPMachineTemplate", "GCPMachinePool", "GCPManagedMachinePool", "VSphereCluster",
		"OpenStackCluster", "OpenStackMachine", "OpenStackMachineTemplate",
	}, o.Kind)
}

// JudgeMachines reports what a provider refuses of an object for the machines of a cluster only together with the object for the whole
// cluster. Judge reports what it refuses of each alone.
func JudgeMachines(machines, cluster Object, report func(field, summary, hint string)) {
	inherited := inheritedTags{from: fmt.Sprintf("%s %.80s", cluster.Kind, cluster.Name)}
	whole, p, field := cluster.spec(report), machines.spec(report), "additionalTags"
	var own []string
	switch cluster.Kind {
	case "AWSCluster", "AWSManagedControlPlane":
		inherited.cloud, inherited.cluster, own = inAWS, awsMachineTags, instanceTags(p)
	case "AzureCluster":
		inherited.cloud, inherited.cluster, own = inAzure, azureClusterTags, azureMachineTags
	case "OpenStackCluster":
		inherited.cloud, field = inNova, "tags"
	default:
		return
	}
	inherited.tags = whole.tagsIn(field)
	inherited.judge(p, field, own, p.tagsIn(field))
	if host := p.in("dynamicHostAllocation"); host.has("tags") {
		inherited.judge(host, "tags", nil, host.in("tags"), p.in(field))
	}
}

// JudgeCluster reports what a provider refuses of an object for a whole cluster whose control plane is on machines of the provider. The
// address of such an API server comes from this object. Other control planes write the address into it, later.
func JudgeCluster(cluster, owner Object, report func(field, summary, hint string)) {
	if cluster.IsManagedElsewhere() {
		return // what makes the infrastructure writes the address into it
	}
	switch cluster.Kind {
	case "OpenStackCluster":
		openstackEndpoint(cluster.spec(report))
	case "VSphereCluster":
		vsphereEndpoint(cluster.spec(report), owner.spec(report))
	}
}
