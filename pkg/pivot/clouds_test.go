package pivot

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// endpoints returns each API that the objects at the source name once.
func TestEndpoints(t *testing.T) {
	object := func(group, kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"namespace": "team-a", "name": name}, "spec": spec,
		}}
	}
	of := func(kind, name, field, value string) *unstructured.Unstructured {
		return object(infrastructure, kind, name, map[string]any{field: value})
	}
	urls, unknown := endpoints([]*unstructured.Unstructured{
		of("AWSCluster", "a", "region", "eu-central-1"), of("AWSCluster", "b", "region", "eu-central-1"),
		of("AWSCluster", "c", "region", "cn-north-1"),
		object("controlplane.cluster.x-k8s.io", "AWSManagedControlPlane", "d", map[string]any{"region": "us-east-1"}),
		of("AWSManagedCluster", "d", "", ""), of("AWSMachine", "m", "region", "nowhere"),
		of("VSphereCluster", "e", "server", "vcenter.example.com"), of("VSphereCluster", "f", "server", "https://10.0.0.1:8443"),
		of("VSphereCluster", "evil", "server", "vcenter.example.com/sdk?x=y"),
		of("AzureCluster", "g", "azureEnvironment", ""), of("AzureCluster", "h", "azureEnvironment", "AzureStack"),
		of("GCPCluster", "i", "region", "europe-west1"),
		of("DevCluster", "j", "", ""), of("OpenStackCluster", "k", "", ""),
		object("cluster.x-k8s.io", "Cluster", "l", map[string]any{"region": "none"}),
	})
	want := []string{
		"https://10.0.0.1:8443", "https://compute.googleapis.com", "https://ec2.cn-north-1.amazonaws.com.cn",
		"https://ec2.eu-central-1.amazonaws.com", "https://ec2.us-east-1.amazonaws.com", "https://management.azure.com",
		"https://vcenter.example.com",
	}
	if !slices.Equal(urls, want) {
		t.Errorf("got %q, want %q", urls, want)
	}
	if want := []string{"AzureCluster team-a/h", "OpenStackCluster team-a/k", "VSphereCluster team-a/evil"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown: %q, want %q", unknown, want)
	}
}
