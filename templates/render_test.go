//go:build integration

package templates_test

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// notKept are the kinds whose objects Helm deletes when they leave the values. All other objects stay until their Cluster is deleted.
var notKept = []string{"MachineDeployment", "MachinePool", "MachineHealthCheck", "ServiceAccount", "Role", "RoleBinding", "Deployment"}

// Each case renders to its golden file. A real API server with the providers' CRDs accepts every object, as a dry run and for real, and
// knows all its fields.
func TestChartsRender(t *testing.T) {
	rendered, kinds := map[string][]*unstructured.Unstructured{}, map[string]bool{}
	for _, flavour := range flavours(t) {
		for name, values := range cases(t, flavour) {
			manifest, err := helmTemplate(t, flavour, values)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			golden(t, name+".yaml", manifest)
			objects, err := kube.ParseYAML(manifest)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkObjects(t, name, objects)
			rendered[name] = append(objects, embedded(t, objects)...)
			for _, obj := range rendered[name] {
				if !scheme.Scheme.Recognizes(obj.GroupVersionKind()) { // Kubernetes' own need no CRD
					kinds[obj.GetKind()] = true
				}
			}
		}
	}
	c, _ := kubetest.Start(t)
	if _, err := c.Apply(t.Context(), crdsOf(t, kinds), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("strict", func(t *testing.T) { checkStrict(t, c) })
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		t.Run(name, func(t *testing.T) {
			if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				t.Fatal(err)
			}
			for _, obj := range rendered[name] {
				obj.SetNamespace(name)
				if err := c.Create(t.Context(), obj.DeepCopy(), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
					t.Errorf("dry run of %s: %v", kube.RefOf(obj), err)
				} else if err := c.Create(t.Context(), obj, client.FieldValidation("Strict")); err != nil {
					t.Errorf("%s: %v", kube.RefOf(obj), err)
				}
			}
		})
	}
}

// checkStrict checks that the API server refuses fields that are not in a CRD. Otherwise the test would prove nothing.
func checkStrict(t *testing.T, c *kube.Client) {
	t.Helper()
	for spec, want := range map[string]string{
		`{instanceType: m7i.large, instanceTyp: x}`: "unknown field",
		`{instanceType: m}`:                         "at least 2 chars long",
		`{instanceType: m7i.large, capacityReservationId: a, spotMarketOptions: {}}`: "cannot be set when spotMarketOptions",
	} {
		var obj unstructured.Unstructured
		manifest := "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachineTemplate\n" +
			"metadata: {name: x, namespace: default}\nspec: {template: {spec: " + spec + "}}\n"
		if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), &obj, client.DryRunAll, client.FieldValidation("Strict")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", spec, err, want)
		}
	}
}

// checkObjects checks what the API server does not check: which objects Helm keeps, and that references name objects of the chart.
func checkObjects(t *testing.T, name string, objects []*unstructured.Unstructured) {
	t.Helper()
	there := map[string]bool{}
	for _, obj := range objects {
		there[obj.GetKind()+"/"+obj.GetName()] = true
		if kept := obj.GetAnnotations()["helm.sh/resource-policy"] == "keep"; kept == slices.Contains(notKept, obj.GetKind()) {
			t.Errorf("%s: %s: kept is %v", name, kube.RefOf(obj), kept)
		}
		if obj.GetLabels()["cluster.x-k8s.io/cluster-name"] != "x" {
			t.Errorf("%s: %s does not carry its cluster's name", name, kube.RefOf(obj))
		}
	}
	for _, obj := range objects {
		eachMap(obj.Object, func(field string, m map[string]any) {
			if field == "infrastructureRef" || field == "controlPlaneRef" || field == "configRef" {
				kind, _ := m["kind"].(string)
				to, _ := m["name"].(string)
				if !there[kind+"/"+to] {
					t.Errorf("%s: %s refers to %s %q, which is not there", name, kube.RefOf(obj), kind, to)
				}
			}
		})
	}
}

func eachMap(value any, visit func(field string, m map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		for field, v := range value {
			if m, ok := v.(map[string]any); ok {
				visit(field, m)
			}
			eachMap(v, visit)
		}
	case []any:
		for _, v := range value {
			eachMap(v, visit)
		}
	}
}

// embedded returns the resources of Azure Service Operator that CAPZ creates from its objects. The CRDs of CAPZ do not check them.
func embedded(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		if !strings.HasPrefix(obj.GetKind(), "AzureASO") {
			continue
		}
		resources, _, err := unstructured.NestedSlice(obj.Object, "spec", "resources")
		if err != nil || len(resources) == 0 {
			t.Fatalf("%s has no resources (%v)", kube.RefOf(obj), err)
		}
		for _, resource := range resources {
			fields, ok := resource.(map[string]any)
			if !ok {
				t.Fatalf("%s: a resource is %T", kube.RefOf(obj), resource)
			}
			out = append(out, &unstructured.Unstructured{Object: fields})
		}
	}
	return out
}

// The templates use the defaults of pools that the schema names.
func TestPoolDefaults(t *testing.T) {
	for _, flavour := range flavours(t) {
		s := schemaOf(t, flavour)
		pool := maps.Clone(s.Examples[0]["pools"].([]any)[0].(map[string]any))
		for name, property := range s.Properties["pools"].Items.Properties {
			if _, ok := pool[name]; !ok && property.Default != nil {
				pool[name] = property.Default
			}
		}
		left, err := helmTemplate(t, flavour, s.Examples[0])
		if err != nil {
			t.Fatal(err)
		}
		set, err := helmTemplate(t, flavour, overlay(s.Examples[0], map[string]any{"pools": []any{pool}}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(left), string(set)); diff != "" {
			t.Errorf("%s with its defaults set:\n%s", flavour, diff)
		}
	}
}

// The templates refuse mistakes that a schema cannot express, and their error names the mistake.
func TestTemplatesRefuse(t *testing.T) {
	for _, tt := range []struct{ flavour, values, want string }{
		{"aws-eks", "pools: [{name: a, min: 3, max: 2, size: m7i.large}]", "pools[0].min"},
		{"aws-kubeadm", "pools: [{name: a, replicas: 1, size: m7i.large}, {name: a, replicas: 1, size: m7i.large}]", "two pools called a"},
		{
			"aws-eks", "pools: [{name: a, replicas: 1, size: m7i.large, labels: {node-role.kubernetes.io/a: b}}]",
			"label node-role.kubernetes.io/a",
		},
		{"gcp-kubeadm", "pools: [{name: control-plane, replicas: 1, size: e2-standard-4}]", "control-plane is taken"},
		{"azure-aks", "pools: [{name: a, replicas: 1, size: Standard_D4s_v5}]", "at least one of mode System"},
		{"azure-aks", "pools: []", "at least one of mode System"},
		{"gcp-gke", "pools: []", "pools: GKE"},
		{"azure-aks", "network: {outbound: userDefinedRouting}", "network.outbound: with userDefinedRouting"},
		{"azure-aks", "network: {outbound: userAssignedNATGateway}", "network.outbound: with userAssignedNATGateway"},
		{"azure-aks", "pools: [{name: a, mode: System, replicas: 1, size: Standard_D4s_v5, spot: true}]", "pools[0].spot"},
		{"azure-aks", "pools: [{name: a, mode: System, min: 0, max: 1, size: Standard_D4s_v5}]", "needs a node"},
		{"aws-eks", "network: {subnetIDs: [subnet-0123456789abcdef0]}", "network.subnetIDs"},
		{
			"aws-eks", "network: {vpcID: vpc-0123456789abcdef0, subnetIDs: [subnet-0123456789abcdef0]}",
			"network.subnetIDs: EKS needs subnets in two zones",
		},
		{"azure-kubeadm", "network: {vnet: {name: hub}}", "network.vnet"},
		{"azure-kubeadm", "network: {vnet: {nodeSubnet: nodes}}", "network.vnet.name"},
		{"azure-kubeadm", "network: {vnet: {name: hub, controlPlaneSubnet: a, nodeSubnet: a}}", "network.vnet.nodeSubnet"},
		{"aws-eks", "controlPlane: {access: {public: false, allowedCIDRs: [10.0.0.0/8]}}", "controlPlane.access.allowedCIDRs"},
		{"aws-kubeadm", "controlPlane: {access: {public: false, allowedCIDRs: [10.0.0.0/8]}}", "controlPlane.access.allowedCIDRs"},
		{"azure-aks", "controlPlane: {access: {public: false, allowedCIDRs: [10.0.0.0/8]}}", "controlPlane.access.allowedCIDRs"},
		{"gcp-gke", "controlPlane: {access: {public: false, allowedCIDRs: [10.0.0.0/8]}}", "controlPlane.access.allowedCIDRs"},
		{"gcp-kubeadm", "controlPlane: {access: {global: true}}", "controlPlane.access.global"},
		{"aws-kubeadm", "pools: [{name: a, replicas: 1, size: m7i.large, zone: eu-west-1a}]", "pools[0].zone: eu-west-1a is no zone"},
		{"aws-kubeadm", "diskEncryptionKey: 'arn:aws:kms:eu-west-1:111122223333:key/2'", "diskEncryptionKey: the key is of the region eu-west-1"},
		{"aws-eks", "pools: [{name: a, replicas: 1, size: m7i.large, zones: [eu-west-1a]}]", "pools[0].zones: eu-west-1a is no zone"},
		{"aws-eks", "diskEncryptionKey: 'arn:aws:kms:eu-west-1:111122223333:key/2'", "diskEncryptionKey: the key is of the region eu-west-1"},
		{
			"aws-eks", "controlPlane: {encryptionKey: 'arn:aws:kms:eu-west-1:111122223333:key/2'}",
			"controlPlane.encryptionKey: the key is of the region eu-west-1",
		},
		{"gcp-kubeadm", "pools: [{name: a, replicas: 1, size: e2-standard-4, zone: europe-west1-b}]", "pools[0].zone: europe-west1-b is no zone"},
		{"gcp-kubeadm", "controlPlane: {zones: [europe-west1-b]}", "controlPlane.zones: europe-west1-b is no zone"},
		{
			"gcp-gke", "pools: [{name: a, replicas: 1, size: e2-standard-4, zones: [europe-west1-b]}]",
			"pools[0].zones: europe-west1-b is no zone",
		},
		{"gcp-gke", "location: europe-west1-b", "location: europe-west1-b is neither the region"},
		{"in-memory", "labels: {cluster.x-k8s.io/cluster-name: other}", "is taken"},
		{"azure-kubeadm", "identity: {name: ''}", "identity.name"},
		{"gcp-gke", "pools: [{name: a, replicas: 2, size: e2-standard-4}]", "pools[0].replicas"},
		{"gcp-gke", "pools: [{name: a, replicas: 3, size: e2-standard-4, zones: [europe-west3-a, europe-west3-b]}]", "over 2 zones"},
		{"gcp-gke", "pools: [{name: 7a, replicas: 3, size: e2-standard-4}]", "pools/0/name"},
		{"vsphere-kubeadm", "network: {name: null}", "network.name"},
		{"vsphere-kubeadm", "identity: {name: ''}", "identity.name"},
		{"docker", "replicaz: 1", "replicaz"},
	} {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(tt.values), &values); err != nil {
			t.Fatal(err)
		}
		_, err := helmTemplate(t, tt.flavour, overlay(schemaOf(t, tt.flavour).Examples[0], values))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %s: got %v, want an error that names %s", tt.flavour, tt.values, err, tt.want)
		}
	}
}

// helmTemplate runs `helm template` for a release called x.
func helmTemplate(t *testing.T, flavour string, values map[string]any) ([]byte, error) {
	t.Helper()
	content, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), helmProgram(t), "template", "x", filepath.Join("charts", flavour),
		"--namespace", "x", "--values", "-")
	cmd.Stdin = bytes.NewReader(content)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New(stderr.String())
	}
	return out, nil
}

// helm holds Helm's own program, which is built once.
var helm struct {
	sync.Once
	dir string
	err error
}

func helmProgram(t *testing.T) string {
	t.Helper()
	helm.Do(func() {
		if helm.dir, helm.err = os.MkdirTemp("", "helm"); helm.err != nil { //nolint:usetesting // later tests use the program too
			return
		}
		cmd := exec.CommandContext(t.Context(), "go", "install", "helm.sh/helm/v3/cmd/helm@v3.20.2")
		cmd.Env = append(os.Environ(), "GOBIN="+helm.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			helm.err = errors.New(string(out))
		}
	})
	if helm.err != nil {
		t.Fatal(helm.err)
	}
	return filepath.Join(helm.dir, "helm")
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	_ = os.RemoveAll(helm.dir)
	os.Exit(code)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", name, diff)
	}
}
