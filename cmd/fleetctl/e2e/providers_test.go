//go:build e2e && providers

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// envClouds has the clouds whose providers are in the bundle, separated by commas.
const envClouds = "CLOUDS"

// noAccount are the variables without which the providers' manifests cannot be completed, with what is nobody's account.
var noAccount = map[string]string{
	"AWS_B64ENCODED_CREDENTIALS": "bm8gYWNjb3VudA==", // "no account"
	"GCP_B64ENCODED_CREDENTIALS": "bm8gYWNjb3VudA==",
	"VSPHERE_USERNAME":           "nobody",
	"VSPHERE_PASSWORD":           "no account",
}

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
spec:
  location: westeurope
  operatorSpec:
    configMapExpressions:
      - {name: same, key: place, value: self.spec.location}
      - {name: same, key: place, value: self.spec.location}
`, "cannot write more than one configmap value"},
	{"vsphere", `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereMachineTemplate
metadata: {name: wrong, namespace: default}
spec: {template: {spec: {template: x, hardwareVersion: newest, network: {devices: [{networkName: x}]}}}}
`, "should be a valid VM hardware version"},
}

// converted are objects that are kept in another version than the one that they are written in: the API server has a provider's
// webhook convert them, both ways. No provider of another cloud has such a version that is still served.
var converted = []struct{ cloud, manifest string }{
	{"azure", `apiVersion: resources.azure.com/v1api20200601
kind: ResourceGroup
metadata: {name: kept, namespace: default, annotations: {serviceoperator.azure.com/reconcile-policy: skip}}
spec: {location: westeurope}
`},
}

// TestCloudProviders starts the real managers of several clouds from their real manifests on one embedded host, without an account in
// any: more than start, and serve their webhooks, they cannot do then. It prints what each takes of time and memory.
func TestCloudProviders(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "e2e-clouds")
	for name, value := range noAccount {
		t.Setenv(name, value)
	}
	clouds := strings.Split(os.Getenv(envClouds), ",")
	args := []string{"init", "--bundle", os.Getenv(envBundle), "--kubernetes-version", kubernetesVersion, "--timeout", "25m", "-o", "json"}
	for _, cloud := range clouds {
		args = append(args, "--provider", cloud)
	}
	done := f.ok(args...)
	made := decode[initResult](t, done.stdout)
	raw, err := os.ReadFile(made.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kube.New(raw, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		if object := parse(t, w.manifest); slices.Contains(clouds, w.cloud) {
			t.Run("refuses "+object.GetKind(), func(t *testing.T) { refused(t, c, object, w.words) })
		}
	}
	for _, k := range converted {
		if object := parse(t, k.manifest); slices.Contains(clouds, k.cloud) {
			t.Run("converts "+object.GetKind(), func(t *testing.T) { kept(t, c, object) })
		}
	}
	if st, code := f.status(); code != 0 {
		t.Errorf("status: exit %d, %+v", code, st.Problems)
	}
	t.Run("takes", func(t *testing.T) { takes(t, f, c, done) })
	f.ok("teardown", "--yes")
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	objects, err := kube.ParseYAML([]byte(manifest))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects: %v\n%s", len(objects), err, manifest)
	}
	return objects[0]
}

// patience is how long a webhook may take to answer on a machine that is busy.
const patience = 3 * time.Minute

// refused requires that the API server refuses an object with what a webhook says.
func refused(t *testing.T, c *kube.Client, object *unstructured.Unstructured, words string) {
	t.Helper()
	eventually(t, object.GetKind()+" is refused", patience, func() string {
		err := c.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), words) {
			return ""
		}
		return fmt.Sprint(err)
	})
}

// kept requires that an object can be written and read again as it was.
func kept(t *testing.T, c *kube.Client, object *unstructured.Unstructured) {
	t.Helper()
	eventually(t, object.GetKind()+" is kept in another version", patience, func() string {
		if err := c.Create(t.Context(), object.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})
	got := object.DeepCopy()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), got); err != nil {
		t.Fatal(err)
	}
	want, _, _ := unstructured.NestedString(object.Object, "spec", "location")
	if location, _, _ := unstructured.NestedString(got.Object, "spec", "location"); location != want ||
		got.GetAPIVersion() != object.GetAPIVersion() {
		t.Errorf("written in %s and read as %v", object.GetAPIVersion(), got.Object)
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	group := object.GroupVersionKind()
	if err := c.Get(t.Context(), client.ObjectKey{Name: strings.ToLower(group.Kind) + "s." + group.Group}, crd); err != nil {
		t.Fatal(err)
	}
	if stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions"); len(stored) == 0 ||
		slices.Contains(stored, group.Version) {
		t.Errorf("%s is kept in %v: nothing was converted", group, stored)
	}
}
