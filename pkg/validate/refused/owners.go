package refused

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// IsJudgedWithOwner tells whether JudgeOwned judges machines of these kinds.
func IsJudgedWithOwner(made, whole *render.Object) bool {
	switch whole.Kind {
	case "AWSCluster", "AzureCluster", "GCPCluster":
		return true
	case "AzureManagedControlPlane":
		return made.Kind == "AzureManagedMachinePool"
	case "GCPManagedControlPlane":
		return made.Kind == "GCPManagedMachinePool"
	case "AzureASOManagedControlPlane":
		return made.Kind == "AzureASOManagedMachinePool"
	}
	return false
}

// Report adds a finding about a field of an object.
type Report = func(field, summary, hint string)

// JudgeOwned reports what a provider refuses of what makes machines, such as a MachinePool, together with what the machines are made from,
// and with the infrastructure or control plane of the whole cluster.
func JudgeOwned(owner, made, whole Object, onOwner, onMade Report) {
	by, p, of := owner.spec(onOwner), made.spec(onMade), whole.spec(onMade)
	if owner.Kind == "MachineDeployment" || owner.Kind == "MachineSet" || owner.Kind == "MachinePool" {
		failureDomains(by, of)
	}
	switch {
	case made.Kind == "GCPManagedMachinePool":
		gkePoolOf(by, p, of, owner.isAnnotated(autoscalerMin))
		gkeLocations(p, of)
	case made.Kind == "AzureManagedMachinePool":
		if n, ok := by.number("replicas"); ok && n == 0 && p.word("mode") == "System" {
			by.refuse("replicas", fmt.Sprintf("AKS makes no pool of the mode System without a node, and %.80s is one", made.Name),
				"set it to 1 or more, or let another pool have the mode System")
		}
	case made.Kind == "AzureASOManagedMachinePool":
		asoPoolOf(by, p, owner.isAnnotated(managedReplicas))
	case whole.Kind == "AzureCluster" && !whole.IsManagedElsewhere():
		azureMachinesOf(p, of)
	}
}

// failureDomains judges where machines are: the failure domains of a cluster in a cloud are zones of its region. owner is the spec of what
// makes the machines.
func failureDomains(owner, cluster part) {
	region, given := cluster.known("region")
	template := owner.in("template").in("spec")
	list, _ := owner.fields["failureDomains"].([]any)
	all := []part{template}
	for i, item := range list {
		all = append(all, part{owner.object, map[string]any{"failureDomain": item}, fmt.Sprintf("spec.failureDomains[%d]", i), owner.report})
	}
	for i, one := range all {
		zone, known := one.known("failureDomain")
		field, hint, kind := "failureDomain", "", cluster.object.Kind
		if i > 0 {
			field = ""
		}
		switch {
		case !known:
		case kind == "AzureCluster" && !azureZone.MatchString(zone):
			one.refuse(field, fmt.Sprintf("%.60q is no zone: in Azure each region numbers its own", zone), `write its number, as in "1"`)
		case kind == "AWSCluster" && given && awsRegionForm.MatchString(region) && !strings.HasPrefix(zone, region):
			hint = "`aws ec2 describe-availability-zones`"
		case kind == "GCPCluster" && given && gcpRegionForm.MatchString(region) && !strings.HasPrefix(zone, region+"-"):
			hint = "`gcloud compute zones list`"
		}
		if hint != "" {
			one.refuse(field, fmt.Sprintf("%.60q is no zone of the region %.40s, where the cluster is", zone, region),
				"take one of this region: "+hint)
		}
	}
}

// azureMachinesOf judges machines together with the cluster in whose network they are.
func azureMachinesOf(p, cluster part) {
	place, known := p.known("location")
	if of, given := cluster.known("location"); p.object.Kind == "AzureMachinePool" && known && given && !strings.EqualFold(place, of) &&
		azureRegionForm.MatchString(place) && azureRegionForm.MatchString(of) {
		p.refuse("location", fmt.Sprintf("%.40s is not where the network of the cluster is, %.40s", place, of),
			"write the location of the cluster")
	}
	subnets, ok := azureSubnetNames(cluster)
	if !ok {
		return
	}
	machines := p
	if p.object.Kind == "AzureMachinePool" {
		machines = p.in("template")
	}
	for _, one := range append(machines.each("networkInterfaces"), machines) {
		if name, given := one.known("subnetName"); given && !subnets[name] {
			one.refuse("subnetName", fmt.Sprintf("%s %.80s makes no subnet %.80q", cluster.object.Kind, cluster.object.Name, name),
				"write the name of one of its subnets, or add it to networkSpec.subnets")
		}
	}
}

// azureSubnetNames are the names of all subnets that the provider makes for a cluster. ok is false for a network that it does not make, or
// whose subnets it names itself.
func azureSubnetNames(cluster part) (names map[string]bool, ok bool) {
	network := cluster.in("networkSpec")
	vnet := network.in("vnet")
	if vnet.given("name") || vnet.given("resourceGroup") || vnet.given("id") { // it may be there already, with other subnets
		return nil, false
	}
	names, roles := map[string]bool{}, map[string]bool{}
	for _, subnet := range network.each("subnets") {
		name, known := subnet.known("name")
		if !known {
			return nil, false
		}
		names[name], roles[subnet.word("role")] = true, true
	}
	return names, roles["cluster"] || roles["node"] && roles["control-plane"]
}

// JudgePools reports what AKS refuses of all pools of a cluster together. reports are those of the pools. all tells whether these are
// certainly all pools.
func JudgePools(pools []Object, reports []Report, all bool) {
	names, system := map[string]bool{}, false
	for i, pool := range pools {
		p, field := aksPoolOf(pool, reports[i])
		mode := p.word("mode")
		// Azure Service Operator may have adopted a cluster with a pool for the system that nobody has declared.
		system = system || mode != "User" || pool.Kind == "AzureASOManagedMachinePool"
		name, known := p.known(field)
		if known && names[name] {
			p.refuse(field, fmt.Sprintf("another pool of the cluster is called %.40s in AKS, too", name), "give each its own")
		}
		names[name] = known
	}
	if all && len(pools) > 0 && !system {
		p, _ := aksPoolOf(pools[0], reports[0])
		p.refuse("mode", "no pool of the cluster has the mode System, and AKS makes no cluster without one", "set mode of one pool to System")
	}
}

// aksPoolOf is the part of a pool that AKS makes it of, and the field with its name.
func aksPoolOf(pool Object, report Report) (p part, field string) {
	p = pool.spec(report)
	field = "name"
	if pool.Kind == "AzureASOManagedMachinePool" {
		resource, _, _ := p.aso("ManagedClustersAgentPool")
		p, field = resource.in("spec"), "azureName"
	}
	return p, field
}

// labelsOfNodes judges the labels that a cloud gives the nodes of a pool.
func (p part) labelsOfNodes(field string) {
	labels := p.in(field)
	for _, key := range labels.names() {
		value, known := labels.known(key)
		switch {
		case strings.Contains(key, "${"):
		case len(validation.IsQualifiedName(key)) > 0:
			p.refuse(field, fmt.Sprintf("%.80q is no key of a label", key), "use letters, digits, - _ and ., as in example.com/team")
		case known && len(validation.IsValidLabelValue(value)) > 0:
			p.refuse(field, fmt.Sprintf("the label %.80s cannot have the value %.80q", key, value), "use up to 63 letters, digits, - _ and .")
		}
	}
}
