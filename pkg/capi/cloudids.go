package capi

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// cloudField is a field in which a provider keeps the name of a resource in the cloud.
type cloudField struct {
	// path of the field. A list on the way stands for all its elements, and * for all values of a map.
	path string
	// what is said before the value; empty if the value itself says what it is.
	what string
}

// cloudFields are the fields of Cluster API's contracts, and those of AWS, Azure, Google Cloud, vSphere, OpenStack and Metal3. A machine
// usually has its ID twice; the first field has the longer form.
var cloudFields = []cloudField{
	{path: "spec.providerID"},
	{path: "spec.providerIDList"},
	{path: "spec.instanceID"},
	{path: "status.instanceID"}, // AWSMachine, OpenStackMachine, OpenStackServer
	// AWSCluster, AWSManagedControlPlane
	{path: "spec.eksClusterName", what: "EKS cluster"},
	{path: "spec.network.vpc.id"},
	{path: "spec.network.subnets.resourceID"},
	{path: "spec.network.subnets.natGatewayId"},
	{path: "status.networkStatus.apiServerElb.arn"},
	{path: "status.networkStatus.apiServerElb.name", what: "load balancer"},
	{path: "status.networkStatus.secondaryAPIServerELB.arn"},
	{path: "status.networkStatus.securityGroups.*.id"},
	{path: "status.bastion.id"},
	// AzureCluster, AzureManagedControlPlane, and the objects of Azure's service operator
	{path: "spec.resourceGroup", what: "resource group"},
	{path: "spec.resourceGroupName", what: "resource group"},
	{path: "spec.nodeResourceGroupName", what: "resource group"},
	{path: "spec.networkSpec.vnet.id"},
	{path: "status.id"},
	// GCPCluster, GCPManagedCluster, GCPManagedControlPlane
	{path: "status.network.selfLink"},
	{path: "status.network.router"},
	{path: "status.network.firewallRules.*"},
	{path: "status.network.apiServerForwardingRule"},
	{path: "status.network.apiInternalForwardingRule"},
	{path: "status.network.apiServerInstanceGroups.*"},
	{path: "status.clusterName", what: "GKE cluster"},
	// VSphereVM, VSphereCluster
	{path: "spec.biosUUID", what: "VM with the BIOS UUID"},
	{path: "spec.clusterModules.moduleUUID", what: "cluster module"},
	// OpenStackCluster
	{path: "status.network.id", what: "network"},
	{path: "status.router.id", what: "router"},
	{path: "status.apiServerLoadBalancer.id", what: "load balancer"},
	{path: "status.bastion.id", what: "bastion"},
	{path: "status.bastionSecurityGroup.id", what: "security group"},
	{path: "status.controlPlaneSecurityGroup.id", what: "security group"},
	{path: "status.workerSecurityGroup.id", what: "security group"},
}

// metal3Host is the annotation of a Metal3Machine with the BareMetalHost, NAMESPACE/NAME, that it has.
const metal3Host = "metal3.io/BareMetalHost"

// mostCloudIDs bounds how many resources of one object are named.
const mostCloudIDs = 10

// cloudID returns the provider's IDs of the resources that an object has in the cloud, in one text; "" if it has none.
func cloudID(obj *unstructured.Unstructured) string {
	var ids, raw []string
	add := func(what, value string) {
		known := func(other string) bool { return other == value || strings.HasSuffix(other, "/"+value) }
		if value == "" || slices.ContainsFunc(raw, known) {
			return
		}
		raw = append(raw, value)
		ids = append(ids, strings.TrimSpace(what+" "+value))
	}
	for _, field := range cloudFields {
		for _, value := range textsAt(obj.Object, strings.Split(field.path, ".")) {
			add(field.what, value)
		}
	}
	add("BareMetalHost", obj.GetAnnotations()[metal3Host])
	return plain.Names(ids, mostCloudIDs)
}

// textsAt returns the texts at a path of an object, in the order of its lists and of the keys of its maps. Values of other types are left
// out.
func textsAt(value any, path []string) []string {
	switch v := value.(type) {
	case string:
		if len(path) == 0 {
			return []string{v}
		}
	case []any:
		var all []string
		for _, element := range v {
			all = append(all, textsAt(element, path)...)
		}
		return all
	case map[string]any:
		switch {
		case len(path) == 0:
		case path[0] == "*":
			var all []string
			for _, key := range slices.Sorted(maps.Keys(v)) {
				all = append(all, textsAt(v[key], path[1:])...)
			}
			return all
		default:
			return textsAt(v[path[0]], path[1:])
		}
	}
	return nil
}
