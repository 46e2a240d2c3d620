package validate

import (
	"strings"
	"testing"
)

// ownedOf are a Cluster, its infrastructure, its control plane where it has one of the provider, and a MachinePool of two nodes with the
// failure domain of the pool. Of the kinds is the spec.
func ownedOf(infra, infraSpec, plane, planeSpec, machines, machineSpec, more string) string {
	out := planeOf(infra, "")
	if plane != "" {
		out = strings.Split(strings.ReplaceAll(out, "{apiGroup: controlplane.cluster.x-k8s.io, kind: KamajiControlPlane",
			"{apiGroup: infrastructure.cluster.x-k8s.io, kind: "+plane), "\n---\n")[0] + ownedKind + plane + ownedNamed + planeSpec
	}
	return out + ownedKind + infra + ownedNamed + infraSpec + ownedKind + machines +
		strings.Replace(ownedNamed, "shop", "w", 1) + machineSpec +
		"\n---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachinePool\nmetadata: {name: w, namespace: shop}\nspec: {clusterName: shop, " +
		"template: {spec: {clusterName: shop, bootstrap: {dataSecretName: a}, " + more + " infrastructureRef: {apiGroup: " +
		"infrastructure.cluster.x-k8s.io, kind: " + machines + ", name: w}}}, replicas: 2}"
}

const (
	ownedKind  = "\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: "
	ownedNamed = "\nmetadata: {name: shop, namespace: shop}\nspec: "
)

// What a provider refuses of machines together with their MachinePool and their cluster.
func TestRefusedWithOwner(t *testing.T) {
	t.Parallel()
	azure := func(spec, machines, more string) string {
		return ownedOf("AzureCluster", "{identityRef: {name: a}, location: westeurope, networkSpec: {"+spec+"}}", "", "", "AzureMachinePool",
			"{location: westeurope, "+machines+"}", more)
	}
	gke := func(plane, pool string) string {
		return ownedOf("GCPManagedCluster", "{region: europe-west3}", "GCPManagedControlPlane", plane, "GCPManagedMachinePool", pool, "")
	}
	aso := func(pool string) string {
		return ownedOf("AzureASOManagedCluster", "{resources: []}", "AzureASOManagedControlPlane", "{resources: ["+asoCluster+"spec: {}}]}",
			"AzureASOManagedMachinePool", "{resources: ["+asoAgents+"spec: {"+pool+"}}]}", "version: v1.36.1,")
	}
	aks := func(pool string) string {
		return ownedOf("AzureManagedCluster", "{}", "AzureManagedControlPlane", "{}", "AzureManagedMachinePool", pool, "")
	}
	annotated := func(annotation, manifest string) string {
		const pool = "kind: MachinePool\nmetadata: {name: w, namespace: shop"
		return strings.Replace(manifest, pool, pool+", annotations: {cluster.x-k8s.io/"+annotation+"}", 1)
	}
	const subnets = "subnets: [{name: cp, role: control-plane}, {name: nodes, role: node}]"
	for name, tc := range map[string]struct{ manifest, want string }{
		"zone of Azure":            {azure("", "template: {}", "failureDomain: westeurope-1,"), `failureDomain: "westeurope-1" is no zone`},
		"zone of Azure, right":     {azure("", "template: {}", `failureDomain: "1",`), ""},
		"subnet":                   {azure(subnets, "template: {networkInterfaces: [{subnetName: node}]}", ""), `makes no subnet "node"`},
		"subnet, right":            {azure(subnets, "template: {networkInterfaces: [{subnetName: nodes}]}", ""), ""},
		"subnet of the provider's": {azure("subnets: [{name: cp, role: control-plane}]", "template: {subnetName: node}", ""), ""},
		"subnet that is there":     {azure("vnet: {resourceGroup: a}, "+subnets, "template: {subnetName: node}", ""), ""},
		"location": {
			strings.Replace(azure("", "template: {}", ""), "{location: west", "{location: north", 1), "location: northeurope is not where",
		},
		"zone of Google Cloud": {
			ownedOf("GCPCluster", "{region: europe-west3}", "", "", "GCPMachinePool", "{}", "failureDomain: us-central1-a,"),
			`failureDomain: "us-central1-a" is no zone of the region europe-west3`,
		},
		"zone of AWS": {
			ownedOf("AWSCluster", "{region: eu-west-1}", "", "", "AWSMachinePool", "{}", "failureDomain: eu-west-2a,"),
			`failureDomain: "eu-west-2a" is no zone of the region eu-west-1`,
		},
		"nodes that zones cannot share": {gke("{location: europe-west3}", "{}"), "replicas: the provider makes no pool of 2 nodes in 3 zones"},
		"nodes that zones share":        {gke("{location: europe-west3}", "{nodeLocations: [europe-west3-a, europe-west3-b]}"), ""},
		"location that is not known":    {gke(`{location: "${REGION}"}`, "{}"), ""},
		"zone of a pool": {
			gke("{location: europe-west3}", "{nodeLocations: [europe-west3-a, europe-west4-b]}"),
			`nodeLocations[1]: "europe-west4-b" is no zone of the region europe-west3`,
		},
		"pool of Autopilot": {
			gke("{location: europe-west3, enableAutopilot: true, releaseChannel: regular}", "{}"), "has Autopilot",
		},
		"number of nodes":        {aso("mode: System, count: 3"), "count: 3 is not the number of nodes of the MachinePool w, 2"},
		"number of nodes, right": {aso("mode: System, count: 2"), ""},
		"version": {
			aso("mode: System, orchestratorVersion: 1.36.0"), "orchestratorVersion: 1.36.0 is not the version of the MachinePool w, v1.36.1",
		},
		"adopted cluster with a pool that nobody declares": {aso("mode: User"), ""},
		"nodes of another's choice":                        {annotated("replicas-managed-by: other", aso("mode: System, count: 3")), ""},
		"nodes of an autoscaler": {
			strings.Replace(annotated(`cluster-api-autoscaler-node-group-min-size: "3"`, gke("{location: europe-west3}", "{}")),
				", replicas: 2", "", 1), "",
		},
		"subnet of a network that may be there": {azure("vnet: {name: corp}, "+subnets, "template: {subnetName: gpu}", ""), ""},
		"no pool of the system":                 {aks("{name: a, mode: User}"), "mode: no pool of the cluster has the mode System"},
		"a pool of the system":                  {aks("{name: a, mode: System}"), ""},
		"a pool of the system without a node": {
			strings.Replace(aks("{name: a, mode: System}"), "replicas: 2", "replicas: 0", 1), "replicas: AKS makes no pool of the mode System",
		},
		"a pool of some mode": {aks(`{name: a, mode: "${MODE}"}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				wantTogether(t, tc.manifest)
				return
			}
			wantTogether(t, tc.manifest, tc.want)
		})
	}
}

// Two pools of AKS have names of their own, also where a pool has that of its object.
func TestRefusedPoolNames(t *testing.T) {
	t.Parallel()
	one := ownedOf("AzureManagedCluster", "{}", "AzureManagedControlPlane", "{}", "AzureManagedMachinePool", "{name: a, mode: System}", "")
	parts := strings.Split(one, "\n---\n")
	two := strings.ReplaceAll(strings.Join(parts[len(parts)-2:], "\n---\n"), "name: w", "name: v")
	wantTogether(t, one+"\n---\n"+two, "name: another pool of the cluster is called a in AKS")
	wantTogether(t, one+"\n---\n"+strings.Replace(two, "{name: a,", "{name: b,", 1))
}

// CAPV takes a Secret from one cluster or identity alone, and makes no address for an API server on its machines.
func TestRefusedByVSphereTogether(t *testing.T) {
	t.Parallel()
	cluster := func(name, spec string) string {
		return ownedKind + "VSphereCluster\nmetadata: {name: " + name + ", namespace: shop}\nspec: {server: a.example.com, " + spec + "}"
	}
	identity := func(name string) string {
		return ownedKind + "VSphereClusterIdentity\nmetadata: {name: " + name + "}\nspec: {secretName: key}"
	}
	const own, end = "identityRef: {kind: Secret, name: key}", ", controlPlaneEndpoint: {host: 192.0.2.1, port: 6443}"
	wantTogether(t, strings.TrimPrefix(cluster("shop", own)+cluster("other", own), "\n---\n"),
		"spec.identityRef.name: the Secret key is that of VSphereCluster shop")
	wantTogether(t, strings.TrimPrefix(identity("a")+identity("b"), "\n---\n"), "the Secret key is that of VSphereClusterIdentity a")
	wantTogether(t, strings.TrimPrefix(identity("a")+cluster("shop", own), "\n---\n"))
	plane := planeOf("VSphereCluster", "VSphereMachineTemplate")
	wantTogether(t, plane+cluster("shop", own), "VSphereCluster shop: spec: the API server has no address")
	wantTogether(t, plane+cluster("shop", own+end))
	wantTogether(t, planeOf("VSphereCluster", "")+cluster("shop", own))
	const elsewhere = ", annotations: {cluster.x-k8s.io/managed-by: other}}\nspec"
	wantTogether(t, plane+strings.Replace(cluster("shop", own), "}\nspec", elsewhere, 1)+cluster("other", own+end))
}
