package refused

import (
	"fmt"
	"strings"
)

// asoGroup is the group of the objects of Azure Service Operator that AKS makes a cluster and its pools of.
const asoGroup = "containerservice.azure.com/"

// managedReplicas is the annotation of a MachinePool whose number of nodes something other than Cluster API decides.
const managedReplicas = "cluster.x-k8s.io/replicas-managed-by"

// asoControlPlane judges a control plane as the provider does before it makes anything of it: CAPZ's
// pkg/mutators/azureasomanagedcontrolplane.go. Patches of a ClusterClass may complete a template.
func asoControlPlane(p part) {
	asoResources(p)
	const kind = "ManagedCluster"
	cluster, found, sure := p.aso(kind)
	if !found {
		if sure && !p.isTemplate() {
			p.refuse("resources", "there is no ManagedCluster of containerservice.azure.com in it, of which the provider makes the cluster",
				"add one")
		}
		return
	}
	spec := cluster.in("spec")
	if spec.given("agentPoolProfiles") {
		spec.refuse("agentPoolProfiles", "the provider takes the pools from the AzureASOManagedMachinePools, and refuses others",
			"take it away, and make an AzureASOManagedMachinePool and a MachinePool of each")
	}
	version, given := p.known("version")
	own, known := spec.known("kubernetesVersion")
	if given && known && own != strings.TrimPrefix(version, "v") {
		spec.refuse("kubernetesVersion", fmt.Sprintf("%.40s is not the version of the control plane, %.40s", own, version),
			"take it away: the provider sets it")
	}
}

// asoPool judges a pool: CAPZ's pkg/mutators/azureasomanagedmachinepool.go.
func asoPool(p part) {
	asoResources(p)
	pool, found, sure := p.aso("ManagedClustersAgentPool")
	switch {
	case !found && sure && !p.isTemplate():
		p.refuse("resources", "there is no ManagedClustersAgentPool of containerservice.azure.com in it, of which the provider makes the pool",
			"add one")
	case found:
		azureSize(pool.in("spec"), "vmSize")
		aksNamed(pool.in("spec"), "azureName", pool.in("spec").word("osType"))
	}
}

// aso returns the first object of a kind among the resources. sure is false if one of them may be of any kind.
func (p part) aso(kind string) (resource part, found, sure bool) {
	sure = true
	for _, each := range p.each("resources") {
		if strings.HasPrefix(each.word("apiVersion"), asoGroup) && each.word("kind") == kind {
			return each, true, true
		}
		if strings.Contains(each.word("apiVersion")+each.word("kind"), "${") {
			sure = false
		}
	}
	return part{p.object, nil, p.path("resources"), p.report}, false, sure
}

// asoPoolOf judges a pool together with its MachinePool, of which the provider takes the version and the number of nodes.
func asoPoolOf(owner, p part, scaledElsewhere bool) {
	pool, found, _ := p.aso("ManagedClustersAgentPool")
	if !found {
		return
	}
	spec, template := pool.in("spec"), owner.in("template").in("spec")
	version, given := template.known("version")
	if own, known := spec.known("orchestratorVersion"); given && known && own != strings.TrimPrefix(version, "v") {
		spec.refuse("orchestratorVersion", fmt.Sprintf("%.40s is not the version of the MachinePool %.80s, %.40s",
			own, owner.object.Name, version),
			"take it away: the provider sets it")
	}
	replicas, counted := owner.number("replicas")
	if scaledElsewhere {
		return // then the provider leaves the number as it is
	}
	if own, is := spec.number("count"); is && counted && own != replicas && !spec.has("enableAutoScaling") {
		spec.refuse("count", fmt.Sprintf("%.0f is not the number of nodes of the MachinePool %.80s, %.0f", own, owner.object.Name, replicas),
			"take it away: the provider sets it to replicas of the MachinePool")
	}
}
