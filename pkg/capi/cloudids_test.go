package capi

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// What a teardown leaves behind has to be found in the cloud: each provider keeps the names of its resources in fields of its own.
func TestCloudID(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"nothing yet":        {"spec: {region: eu-1}", ""},
		"AWSMachine":         {"spec: {providerID: 'aws:///eu-1/i-1', instanceID: i-1}", "aws:///eu-1/i-1"},
		"AWSMachine, early":  {"spec: {instanceID: i-1}", "i-1"},
		"AWSMachinePool":     {"spec: {providerIDList: ['aws:///eu-1/i-1', 'aws:///eu-1/i-2']}", "aws:///eu-1/i-1, aws:///eu-1/i-2"},
		"docker machine":     {"spec: {providerID: 'docker:////alpha-1'}", "docker:////alpha-1"},
		"vSphere machine":    {"spec: {providerID: 'vsphere://42'}", "vsphere://42"},
		"VSphereVM":          {"spec: {biosUUID: '4207'}", "VM with the BIOS UUID 4207"},
		"VSphereCluster":     {"spec: {clusterModules: [{moduleUUID: m-1}]}", "cluster module m-1"},
		"AzureMachine":       {"spec: {providerID: 'azure:///subscriptions/s/x'}", "azure:///subscriptions/s/x"},
		"OpenStackServer":    {"status: {instanceID: '9f'}", "9f"},
		"Metal3Machine":      {"spec: {providerID: 'metal3://metal/host-1/alpha-1'}", "metal3://metal/host-1/alpha-1"},
		"GCPManagedControl…": {"status: {clusterName: gke-alpha}", "GKE cluster gke-alpha"},
		"AWSCluster": {
			`{spec: {network: {vpc: {id: vpc-1}, subnets: [{id: a, resourceID: subnet-1, natGatewayId: nat-1}]}},
status: {networkStatus: {apiServerElb: {arn: 'arn:aws:elb/x/alpha-apiserver', name: alpha-apiserver},
securityGroups: {lb: {id: sg-1}}}, bastion: {id: i-9}}}`,
			"vpc-1, subnet-1, nat-1, arn:aws:elb/x/alpha-apiserver, sg-1, i-9",
		},
		"AWSManagedControlPlane": {"spec: {eksClusterName: alpha, network: {vpc: {id: vpc-1}}}", "EKS cluster alpha, vpc-1"},
		"AzureCluster": {
			"spec: {resourceGroup: alpha, networkSpec: {vnet: {id: /subscriptions/s/vnet}}}", "resource group alpha, /subscriptions/s/vnet",
		},
		"Azure's service operator": {"status: {id: /subscriptions/s/resourceGroups/alpha}", "/subscriptions/s/resourceGroups/alpha"},
		"GCPCluster": {
			`status: {network: {selfLink: 'https://g/networks/n', router: 'https://g/routers/r',
firewallRules: {b: 'https://g/2', a: 'https://g/1'}}}`,
			"https://g/networks/n, https://g/routers/r, https://g/1, https://g/2",
		},
		"OpenStackCluster": {
			"status: {network: {id: n-1}, router: {id: r-1}, apiServerLoadBalancer: {id: l-1}, externalNetwork: {id: theirs}}",
			"network n-1, router r-1, load balancer l-1",
		},
		"a Metal3Machine with a host": {"metadata: {annotations: {metal3.io/BareMetalHost: metal/host-1}}", "BareMetalHost metal/host-1"},
		"fields of other types":       {"{spec: {providerID: 1, network: {vpc: vpc-1}}, status: {id: {}, network: []}}", ""},
		"more than are named": {
			"spec: {providerIDList: [a, b, c, d, e, f, g, h, i, j, k]}", "a, b, c, d, e, f, g, h, i, j and 1 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), &obj.Object); err != nil {
				t.Fatal(err)
			}
			if got := cloudID(obj); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Objects of Azure's service operator have resources in the cloud, although their groups are not Cluster API's.
func TestNotOfCluster(t *testing.T) {
	for group, want := range map[string]bool{
		"cluster.x-k8s.io": false, "infrastructure.cluster.x-k8s.io": false, "resources.azure.com": false, "network.azure.com": false,
		"": true, "events.k8s.io": true, "azure.com.example.org": true,
	} {
		if got := notOfCluster(schema.GroupKind{Group: group, Kind: "X"}); got != want {
			t.Errorf("%q: got %t", group, got)
		}
	}
}
