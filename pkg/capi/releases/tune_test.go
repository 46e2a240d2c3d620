package releases

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

func TestTuning(t *testing.T) {
	docker := Provider{Name: "docker", Type: Infrastructure, Version: "v1.14.2"}
	source := newTestSource(t, SourceOptions{Repository: releasestest.Repository(t), Tuning: []kube.Tuning{
		{Manager: "infrastructuredocker-manager", Flags: map[string]int{"kube-api-qps": 200, "v": 4}},
		{Manager: "helm-controller", Flags: map[string]int{"concurrent": 4}},
	}})
	rendered, err := source.Render(t.Context(), []Provider{docker, {Name: "kubeadm", Type: Bootstrap, Version: "v1.14.2"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rendered {
		tuned := strings.HasPrefix(f.Name, "infrastructure-docker/")
		for _, want := range []string{"- --kube-api-qps=200\n", "- --v=4\n", "fleetctl.dev/tuning: --kube-api-qps=200 --v=4\n"} {
			if bytes.Contains(f.Content, []byte(want)) != tuned {
				t.Errorf("%s: it was not to be tuned, or %q is missing in it:\n%s", f.Name, want, f.Content)
			}
		}
	}
	if err := source.CheckTuning(t.Context(), []Provider{docker}, []string{"helm-controller"}); err != nil {
		t.Error(err)
	}
	err = source.CheckTuning(t.Context(), []Provider{docker}, []string{"helm-kontroller"})
	if err == nil || !strings.Contains(err.Error(), "tune helm-controller: ") || diag.Hint(err) != "did you mean helm-kontroller?" {
		t.Errorf("got %v, hint %q", err, diag.Hint(err))
	}
}

// TestCPURequest checks that a manager gets the usual CPU request unless its release or its tuning says how much CPU it gets.
func TestCPURequest(t *testing.T) {
	root := releasestest.Repository(t)
	const container = "{name: manager, "
	file := filepath.Join(root, "infrastructure-docker", "v1.14.2", "infrastructure-components-development.yaml")
	released, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(released), container) {
		t.Fatalf("the release has no container %q:\n%s", container, released)
	}
	for name, c := range map[string]struct {
		resources string // of the release
		tuning    kube.Tuning
		want      string
		record    string
	}{
		"nothing is said": {want: "requests.cpu=25m", record: "requests.cpu=25m"},
		"flags are":       {tuning: kube.Tuning{Flags: map[string]int{"v": 4}}, want: "requests.cpu=25m", record: "--v=4 requests.cpu=25m"},
		"memory is": {
			tuning: kube.Tuning{Requests: map[string]string{"memory": "1Gi"}},
			want:   "requests.cpu=25m requests.memory=1Gi", record: "requests.cpu=25m requests.memory=1Gi",
		},
		"the tuning requests":  {tuning: kube.Tuning{Requests: map[string]string{"cpu": "2"}}, want: "requests.cpu=2", record: "requests.cpu=2"},
		"the tuning limits":    {tuning: kube.Tuning{Limits: map[string]string{"cpu": "10m"}}, want: "limits.cpu=10m", record: "limits.cpu=10m"},
		"the release requests": {resources: "requests: {cpu: 10m}", want: "requests.cpu=10m"},
		"the release limits":   {resources: "limits: {cpu: 10m}", want: "limits.cpu=10m"},
	} {
		t.Run(name, func(t *testing.T) {
			with := string(released)
			if c.resources != "" {
				with = strings.Replace(with, container, container+"resources: {"+c.resources+"}, ", 1)
			}
			releasestest.WriteFile(t, file, with)
			c.tuning.Manager = "infrastructuredocker-manager"
			source := newTestSource(t, SourceOptions{Repository: root, Tuning: []kube.Tuning{c.tuning}, CPURequest: "25m"})
			filled, err := source.Filled(t.Context(), Provider{Name: "docker", Type: Infrastructure, Version: "v1.14.2"})
			if err != nil {
				t.Fatal(err)
			}
			deployment := managerOf(t, kube.Pointers(filled.Objs()))
			if got := resourcesOf(t, deployment); got != c.want || deployment.GetAnnotations()[tuningAnnotation] != c.record {
				t.Errorf("it gets %q, want %q; recorded as %q, want %q", got, c.want, deployment.GetAnnotations()[tuningAnnotation], c.record)
			}
		})
	}
}

// TestCPURequestOfCertManager checks that cert-manager gets the request, too, and only if there is one.
func TestCPURequestOfCertManager(t *testing.T) {
	for request, want := range map[string]string{"": "", "25m": "requests.cpu=25m"} {
		source := newTestSource(t, SourceOptions{Repository: releasestest.Repository(t), CPURequest: request})
		objects, _, err := source.CertManagerObjects(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := resourcesOf(t, managerOf(t, objects)); got != want {
			t.Errorf("with the request %q, cert-manager gets %q, want %q", request, got, want)
		}
	}
}

func managerOf(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GroupVersionKind() == kube.DeploymentKind })
	if i < 0 {
		t.Fatal("there is no Deployment")
	}
	return objects[i]
}

// resourcesOf returns the resources of a Deployment's manager in the form of a tuning.
func resourcesOf(t *testing.T, deployment *unstructured.Unstructured) string {
	t.Helper()
	var got kube.Tuning
	if err := kube.EditManager(deployment, func(container map[string]any) (err error) {
		if got.Requests, _, err = unstructured.NestedStringMap(container, "resources", "requests"); err != nil {
			return err
		}
		got.Limits, _, err = unstructured.NestedStringMap(container, "resources", "limits")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return got.String()
}
