//go:build integration

package templates_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const helm = "helm.sh/helm/v3/cmd/helm@v3.20.2"

// crds of what the charts make: folders of Go modules.
var crds = map[string][]string{
	"sigs.k8s.io/cluster-api@v1.14.2": {
		"core/config/crd/bases", "bootstrap/kubeadm/config/crd/bases", "controlplane/kubeadm/config/crd/bases",
	},
	"sigs.k8s.io/cluster-api/test@v1.14.0": {"infrastructure/docker/config/crd/bases"},
}

var cases = []struct{ name, flavour, values string }{
	{"docker-smallest", "docker", "kubernetesVersion: v1.36.3\n"},
	{"docker-everything", "docker", `
kubernetesVersion: v1.36.3
network: {podCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16, serviceDomain: fleet.local}
controlPlane: {replicas: 3, taints: []}
pools:
- {name: md-0, replicas: 2, labels: {node.cluster.x-k8s.io/size: small}, taints: [{key: a, value: b, effect: NoSchedule}]}
- {name: md-1, replicas: 0}
node:
  image: kindest/node:v1.36.3
  extraMounts: [{hostPath: /var/run/docker.sock, containerPath: /var/run/docker.sock}, {hostPath: /x, containerPath: /y, readOnly: true}]
  preLoadImages: [registry.example/a:1]
kubeletExtraArgs: {fail-cgroupv1: "false"}
`},
	{"in-memory", "in-memory", "kubernetesVersion: v1.36.3\ncontrolPlane: {replicas: 3}\npools: [{name: md-0, replicas: 10}]\n"},
}

// The charts render to what the golden files say, and a real API server with Cluster API's CRDs takes every object of it.
func TestChartsRender(t *testing.T) {
	c, _ := kubetest.Start(t)
	for module, dirs := range crds {
		for _, dir := range dirs {
			applyFolder(t, c, filepath.Join(moduleDir(t, module), dir))
		}
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			rendered, err := render(t, tt.flavour, tt.values)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".yaml", rendered)
			objects, err := kube.ParseYAML(rendered)
			if err != nil {
				t.Fatal(err)
			}
			for _, obj := range objects {
				obj.SetNamespace("default")
				err := c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation("Strict"))
				if err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v", kube.RefOf(obj), err)
				}
				kept := obj.GetAnnotations()["helm.sh/resource-policy"] == "keep"
				if pool := obj.GetKind() == "MachineDeployment"; kept == pool {
					t.Errorf("%s: kept is %v; all but pools are kept", kube.RefOf(obj), kept)
				}
			}
		})
	}
}

// A change of what a node is made of changes the names of the templates, any other does not.
func TestTemplateNames(t *testing.T) {
	name := regexp.MustCompile(`(?m)^  name: (x-(?:control-plane|md-0)-[0-9a-f]{8})$`)
	templates := func(values string) string {
		rendered, err := render(t, "docker", "kubernetesVersion: v1.36.3\npools: [{name: md-0, replicas: 1}]\n"+values)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range name.FindAllSubmatch(rendered, -1) {
			names = append(names, string(m[1]))
		}
		return strings.Join(names, " ")
	}
	base := templates("")
	if len(strings.Fields(base)) != 3 {
		t.Fatalf("want three templates, got %s", base)
	}
	if same := templates("controlPlane: {replicas: 3}\n"); same != base {
		t.Errorf("more replicas: %s became %s", base, same)
	}
	for _, values := range []string{"node: {image: other}\n", "kubeletExtraArgs: {v: \"4\"}\n"} {
		if other := templates(values); other == base {
			t.Errorf("%s does not change the names %s", values, base)
		}
	}
}

// Values that the schema refuses, with what the refusal must name.
func TestSchemaRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"{}": "kubernetesVersion", "kubernetesVersion: '1.36'": "kubernetesVersion",
		"{kubernetesVersion: v1.36.3, replicaz: 1}":                                            "replicaz",
		"{kubernetesVersion: v1.36.3, controlPlane: {replicas: 2}}":                            "replicas",
		"{kubernetesVersion: v1.36.3, pools: [{name: A, replicas: 1}]}":                        "name",
		"{kubernetesVersion: v1.36.3, pools: [{name: a, replicas: -1}]}":                       "replicas",
		"{kubernetesVersion: v1.36.3, network: {podCIDR: everywhere}}":                         "podCIDR",
		"{kubernetesVersion: v1.36.3, pools: [{name: a, replicas: 1, labels: {size: small}}]}": "size",
	} {
		if _, err := render(t, "docker", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that names %s", values, err, want)
		}
	}
}

// render runs `helm template` for a release called x.
func render(t *testing.T, flavour, values string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", helm, "template", "x", filepath.Join("charts", flavour), "--values", "-")
	cmd.Stdin = strings.NewReader(values)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, &renderError{stderr.String()}
	}
	return out, nil
}

type renderError struct{ text string }

func (e *renderError) Error() string { return e.text }

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		t.Fatal(err)
	}
	return download.Dir
}

func applyFolder(t *testing.T, c *kube.Client, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs in %s (%v)", dir, err)
	}
	var manifests bytes.Buffer
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		manifests.WriteString("---\n")
		manifests.Write(content)
	}
	if _, err := c.ApplyYAML(t.Context(), manifests.Bytes(), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
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
