//go:build e2e && providers

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// envClouds has the clouds whose providers are in the bundle, separated by commas.
const envClouds = "CLOUDS"

// wrong are objects that only a provider's own webhook knows to be so: their CRDs take them. words are what it says.
var wrong = []struct{ cloud, manifest, words string }{
	{"aws", `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: wrong, namespace: default}
spec: {region: eu-central-1, bastion: {enabled: true, allowedCIDRBlocks: [not-a-block]}}
`, "must be a valid CIDR block"},
	{"gcp", `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: GCPMachine
metadata: {name: wrong, namespace: default}
spec: {instanceType: n2d-standard-2, confidentialCompute: Enabled, onHostMaintenance: Migrate}
`, "OnHostMaintenance"},
	{"azure", `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureCluster
metadata: {name: wrong, namespace: default}
spec:
  location: westeurope
  resourceGroup: "not a group!"
  identityRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureClusterIdentity, name: x}
`, "resourceGroup"},
	{"azure", `apiVersion: resources.azure.com/v1api20200601
kind: ResourceGroup
metadata: {name: wrong, namespace: default}
spec: {location: westeurope, owner: {name: nobody}}
`, "owner"},
}

// TestCloudProviders starts the real managers of three clouds from their real manifests on one embedded host, without an account in
// any: more than start, and serve their webhooks, they cannot do then.
func TestCloudProviders(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "e2e-clouds")
	for _, name := range []string{"AWS_B64ENCODED_CREDENTIALS", "GCP_B64ENCODED_CREDENTIALS"} {
		t.Setenv(name, "bm8gYWNjb3VudA==") // "no account"
	}
	clouds := strings.Split(os.Getenv(envClouds), ",")
	args := []string{"init", "--bundle", os.Getenv(envBundle), "--kubernetes-version", kubernetesVersion, "--timeout", "10m", "-o", "json"}
	for _, cloud := range clouds {
		args = append(args, "--provider", cloud)
	}
	made := decode[initResult](t, f.ok(args...).stdout)
	raw, err := os.ReadFile(made.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kube.New(raw, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		if !slices.Contains(clouds, w.cloud) {
			continue
		}
		objects, err := kube.ParseYAML([]byte(w.manifest))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(objects[0].GetKind(), func(t *testing.T) { refused(t, c, objects[0], w.words) })
	}
	if st, code := f.status(); code != 0 {
		t.Errorf("status: exit %d, %+v", code, st.Problems)
	}
	f.ok("teardown", "--yes")
}

// refused requires that the API server refuses an object with what a webhook says.
func refused(t *testing.T, c *kube.Client, object *unstructured.Unstructured, words string) {
	t.Helper()
	eventually(t, object.GetKind()+" is refused", time.Minute, func() string {
		err := c.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), words) {
			return ""
		}
		return fmt.Sprint(err)
	})
}
