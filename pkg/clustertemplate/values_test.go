package clustertemplate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/clustertemplate"
)

// required are values for what a chart requires, and for nothing else: all else is as the chart has it by itself.
func required(t *testing.T, chart *clustertemplate.Chart) map[string]any {
	t.Helper()
	var schema struct {
		Required []string
		Examples []map[string]any
	}
	if err := json.Unmarshal([]byte(file(t, chart, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	for _, name := range schema.Required {
		values[name] = schema.Examples[0][name]
	}
	return values
}

// templates are all of testdata, and what else a default may be.
func templates(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no templates (%v)", err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	for name, use := range map[string]string{
		"count in quotes":            `"${WORKER_MACHINE_COUNT:=1}"`,
		"quoted count":               `${CONTROL_PLANE_MACHINE_COUNT:="3"}`,
		"count in a text":            `a${CONTROL_PLANE_MACHINE_COUNT:=3}`,
		"empty count":                `"${CONTROL_PLANE_MACHINE_COUNT:=}"`,
		"version":                    `${KUBERNETES_VERSION:=v1.30.0}`,
		"quoted version":             `${KUBERNETES_VERSION:="v1.30.0"}`,
		"empty version":              `${KUBERNETES_VERSION:=}`,
		"number that JSON has not":   `${A:=.inf}`,
		"list that JSON has not":     `${A:=[.nan]}`,
		"date":                       `${A:=2026-01-01}`,
		"list of dates":              `${A:=[2026-01-01]}`,
		"number larger than a float": `${A:=9007199254740993}`,
		"number larger than int":     `${A:=98765432109876543210}`,
		"credential":                 `${ADMIN_PASSWORD}`,
		"credential, empty":          `"${ADMIN_PASSWORD:=}"`,
		"switch of a credential":     `${CREATE_TOKEN:=true}`,
	} {
		all[name] = one("data:\n  x: " + use + "\n")
	}
	all["workers"] = cluster +
		"---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\nmetadata:\n  name: ${CLUSTER_NAME}-md-0\nspec:\n  replicas: " +
		"${WORKER_MACHINE_COUNT:=\"2\"}\n"
	return all
}

// Helm takes each chart with its own values.yaml: its defaults are what its schema says.
func TestOwnValuesPassOwnSchema(t *testing.T) {
	for name, template := range templates(t) {
		t.Run(name, func(t *testing.T) {
			chart, err := translate(template)
			if err != nil {
				t.Fatal(err)
			}
			rendered(t, chart, required(t, chart))
		})
	}
}

// A default of a variable with a fixed type is of that type, however it was written.
func TestFixedTypes(t *testing.T) {
	chart, err := translate(
		one("data:\n  w: \"${WORKER_MACHINE_COUNT:=2}\"\n  c: ${CONTROL_PLANE_MACHINE_COUNT:='3'}\n  k: ${KUBERNETES_VERSION:=\"v1.30.0\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		WorkerMachineCount any                    `yaml:"workerMachineCount"`
		ControlPlane       struct{ Replicas any } `yaml:"controlPlane"`
		KubernetesVersion  any                    `yaml:"kubernetesVersion"`
	}
	if err := yaml.Unmarshal([]byte(file(t, chart, "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	if values.WorkerMachineCount != 2 || values.ControlPlane.Replicas != 3 || values.KubernetesVersion != "v1.30.0" {
		t.Errorf("%+v", values)
	}
}

// A credential has no default in the chart, and the README and the values say that it must not be in Git in clear; a comment keeps none,
// either.
func TestCredentials(t *testing.T) {
	chart, err := translate(
		one("# ${OLD_PASSWORD:=hunter2}\ndata:\n  x: ${ADMIN_PASSWORD}\n  y: ${OPENSTACK_SSH_KEY_NAME:=ops}\n  z: ${CREATE_TOKEN:=true}\n  s: " +
			"${SECRET_NAME:=own}\nidentityRef:\n  name: ${CLOUD_CONFIG_SECRET:=dev-cloud-config}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range chart.Variables {
		if v.Credential != (v.Name == "ADMIN_PASSWORD") {
			t.Errorf("%s: credential %t", v.Name, v.Credential)
		}
	}
	if readme := file(t, chart, "README.md"); !strings.Contains(readme, "must not be put in Git in clear") ||
		!strings.Contains(readme, "- `adminPassword` (line 12 of the template)") {
		t.Error(readme)
	}
	if values := file(t, chart, "values.yaml"); !strings.Contains(values,
		"# ADMIN_PASSWORD, line 12; required; a credential: never in Git in clear.") {
		t.Error(values)
	}
	for _, f := range chart.Files {
		if strings.Contains(string(f.Content), "hunter2") {
			t.Errorf("%s:\n%s", f.Path, f.Content)
		}
	}
}
