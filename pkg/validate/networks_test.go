package validate

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// Networks that a cluster's parts say are compared with each other, wherever they stand: one finding for each that has addresses in common
// with a later one.
func TestNetworks(t *testing.T) {
	const gke = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: GCPManagedControlPlane
metadata: {name: c}
spec:
  clusterNetwork:
    pod: {cidrBlock: 10.10.0.0/16}
    service: {cidrBlock: SERVICE}
    privateCluster: {controlPlaneCidrBlock: 172.16.0.0/28}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: GCPManagedCluster
metadata: {name: c}
spec: {network: {subnets: [{cidrBlock: SUBNET}]}}
`
	const cluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c}
spec: {clusterNetwork: {pods: {cidrBlocks: [PODS]}, services: {cidrBlocks: [10.96.0.0/12, "fd00:2::/112"]}}}
`
	const machines = cluster + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: KIND
metadata: {name: c}
spec: {controlPlaneEndpoint: {host: "HOST", port: 6443}, managedSubnets: [{cidr: 10.0.0.0/24}]}
`
	const aks = cluster + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureASOManagedControlPlane
metadata: {name: c}
spec: {resources: [{kind: ManagedCluster, spec: {networkProfile: {dnsServiceIP: "DNS"}}}]}
`
	const aws = cluster + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: c}
spec: {network: {vpc: {cidrBlock: 10.0.0.0/16, secondaryCidrBlocks: [{ipv4CidrBlock: SECOND}], ipv6: {cidrBlock: SIX}}}}
`
	const azure = cluster + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureCluster
metadata: {name: c}
spec: {networkSpec: {vnet: {cidrBlocks: [10.0.0.0/9]}SUBNETS}}
`
	const eks = cluster + `---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: c}
spec: {secondaryCidrBlock: SECOND, network: {vpc: {cidrBlock: 10.0.0.0/16, secondaryCidrBlocks: [{ipv4CidrBlock: SECOND}]}}}
`
	fill := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	for name, tc := range map[string]struct {
		manifests string
		want      []string
	}{
		"Azure, pods beside the subnets": {
			fill(azure, "PODS", "10.64.0.0/16", "SUBNETS", ", subnets: [{cidrBlocks: [10.0.0.0/16]}, {cidrBlocks: [10.1.0.0/16]}]"),
			nil,
		},
		"Azure, pods in a network without subnets": {
			fill(azure, "PODS", "10.64.0.0/16", "SUBNETS", ""),
			[]string{"10.64.0.0/16, for pods, has addresses in common with 10.0.0.0/9", "10.96.0.0/12, for Services, has addresses in common"},
		},
		"GKE": {fill(gke, "SERVICE", "10.11.0.0/16", "SUBNET", "10.0.0.0/20"), nil},
		"GKE, Services in the pods'": {
			fill(gke, "SERVICE", "10.10.128.0/20", "SUBNET", "10.0.0.0/20"),
			[]string{"GCPManagedControlPlane c: spec.clusterNetwork.pod.cidrBlock: 10.10.0.0/16, for pods, has addresses in common with " +
				"10.10.128.0/20, for Services (spec.clusterNetwork.service.cidrBlock)"},
		},
		"GKE, nodes in the Services'": {
			fill(gke, "SERVICE", "10.0.0.0/16", "SUBNET", "10.0.0.0/20"),
			[]string{"spec.clusterNetwork.service.cidrBlock: 10.0.0.0/16, for Services, has addresses in common with 10.0.0.0/20, for nodes " +
				"(spec.network.subnets[0].cidrBlock of GCPManagedCluster c)"},
		},
		"two families": {fill(cluster, "PODS", `192.168.0.0/16, "fd00:1::/64"`), nil},
		"the second family alone": {
			fill(cluster, "PODS", `192.168.0.0/16, "fd00:2::/64"`),
			[]string{"spec.clusterNetwork.pods.cidrBlocks[1]: fd00:2::/64"},
		},
		"host bits":  {fill(cluster, "PODS", "10.97.1.1/16"), []string{"10.97.1.1/16, for pods, has addresses in common"}},
		"a variable": {fill(cluster, "PODS", `"${PODS}"`), nil},
		"API server": {fill(machines, "PODS", "192.168.0.0/16", "KIND", "VSphereCluster", "HOST", "192.0.2.10"), nil},
		"API server among the pods": {
			fill(machines, "PODS", "192.168.0.0/16", "KIND", "VSphereCluster", "HOST", "192.168.1.10"),
			[]string{"Cluster c: spec.clusterNetwork.pods.cidrBlocks[0]: 192.168.0.0/16, for pods, has addresses in common with 192.168.1.10, " +
				"for the API server (spec.controlPlaneEndpoint.host of VSphereCluster c)"},
		},
		"API server among the Services": {
			fill(machines, "PODS", "192.168.0.0/16", "KIND", "Metal3Cluster", "HOST", "10.96.0.10"),
			[]string{"10.96.0.0/12, for Services, has addresses in common with 10.96.0.10, for the API server"},
		},
		"API server among the nodes": {fill(machines, "PODS", "192.168.0.0/16", "KIND", "OpenStackCluster", "HOST", "10.0.0.5"), nil},
		"API server by name":         {fill(machines, "PODS", "192.168.0.0/16", "KIND", "VSphereCluster", "HOST", "api.example.com"), nil},
		"API server by a variable":   {fill(machines, "PODS", "192.168.0.0/16", "KIND", "VSphereCluster", "HOST", "${HOST}"), nil},
		"API server by a number that is none": {
			fill(machines, "PODS", "192.168.0.0/16", "KIND", "VSphereCluster", "HOST", "300.1.1.1"), []string{`"300.1.1.1" is no address`},
		},
		"API server with its port": {
			fill(machines, "PODS", "192.168.0.0/16", "KIND", "VSphereCluster", "HOST", "192.0.2.10:6443"),
			[]string{`"192.0.2.10:6443" is neither an address nor the name`},
		},
		"DNS among the Services":  {fill(aks, "PODS", "192.168.0.0/16", "DNS", "10.96.0.10"), nil},
		"DNS among those of IPv6": {fill(aks, "PODS", "192.168.0.0/16", "DNS", "fd00:2::a"), nil},
		"DNS by a variable":       {fill(aks, "PODS", "192.168.0.0/16", "DNS", "${DNS}"), nil},
		"DNS beside the Services": {
			fill(aks, "PODS", "192.168.0.0/16", "DNS", "10.200.0.10"), []string{"10.200.0.10 is no address that a"},
		},
		"DNS in the API server's place": {fill(aks, "PODS", "192.168.0.0/16", "DNS", "10.96.0.1"), []string{"10.96.0.1 is no address that a"}},
		"AWS":                           {fill(aws, "PODS", "192.168.0.0/16", "SECOND", "10.1.0.0/16", "SIX", "fd00:3::/56"), nil},
		"AWS, Services in the VPC's second range": {
			fill(aws, "PODS", "192.168.0.0/16", "SECOND", "10.100.0.0/16", "SIX", "fd00:3::/56"),
			[]string{"Cluster c: spec.clusterNetwork.services.cidrBlocks[0]: 10.96.0.0/12, for Services, has addresses in common with " +
				"10.100.0.0/16, for nodes or pods (spec.network.vpc.secondaryCidrBlocks[0].ipv4CidrBlock of AWSCluster c)"},
		},
		"AWS, Services in the VPC's IPv6": {
			fill(aws, "PODS", "192.168.0.0/16", "SECOND", "10.1.0.0/16", "SIX", "fd00:2::/56"),
			[]string{"fd00:2::/112, for Services, has addresses in common with fd00:2::/56, for nodes or pods (spec.network.vpc.ipv6.cidrBlock"},
		},
		"EKS, pods in the VPC's second range": {fill(eks, "PODS", "100.64.0.0/16", "SECOND", "100.64.0.0/16"), nil},
		"EKS, Services in the pods' range": {
			fill(eks, "PODS", "192.168.0.0/16", "SECOND", "10.100.0.0/16"),
			[]string{"10.96.0.0/12, for Services, has addresses in common with 10.100.0.0/16, for nodes or pods (spec.secondaryCidrBlock"},
		},
		"none": {fill(cluster, "PODS", "10.0.0.0"), []string{`"10.0.0.0" is no network`}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []placedNetwork
			var got []string
			for text := range strings.SplitSeq(tc.manifests, "---\n") {
				content := map[string]any{}
				if err := yaml.Unmarshal([]byte(text), &content); err != nil {
					t.Fatal(err)
				}
				f := mapping.Fields(content)
				o := &object{Object: &render.Object{APIVersion: f.Text("apiVersion"), Kind: f.Text("kind"), Name: "c"}}
				networks, wrong := networksOf(o, content)
				for _, f := range wrong {
					got = append(got, f.Summary)
				}
				for _, n := range networks {
					all = append(all, placedNetwork{n, o})
				}
			}
			for _, f := range append(sharing(all), misplacedDNS(all)...) {
				got = append(got, f.Summary)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("%q", got)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q, want %q", got[i], want)
				}
			}
		})
	}
}
