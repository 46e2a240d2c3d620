package fleetrepo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

func TestFleetTags(t *testing.T) {
	const one, two = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	dir := t.TempDir()
	for name, content := range map[string]string{
		"clusters/dev/shop/cluster.yaml": "kind: Namespace\n---\nkind: HelmRelease\nspec:\n  values:\n    tags: {fleetctl.dev/fleet: " + one +
			"}\n",
		"clusters/dev/web/cluster.yaml": "spec:\n  values:\n    tags: &tags\n      fleetctl.dev/fleet: &id " + two +
			"\n    more: *tags\n    again:\n      fleetctl.dev/fleet: *id\n",
		"clusters/dev/shared.yml":   "patches:\n- value:\n    fleetctl.dev/fleet: " + one + "\n",
		"clusters/dev/own.yaml":     "tags:\n  fleetctl.dev/fleet: mine\n---\ntags:\n  fleetctl.dev/fleet: ${fleet}\n---\nfleetctl.dev/fleet: [" + one + "]\n",
		"clusters/dev/.hidden.yaml": "fleetctl.dev/fleet: " + one + "\n",
		"clusters/dev/broken.yaml":  "fleetctl.dev/fleet: [\n",
		"clusters/dev/notes.txt":    "fleetctl.dev/fleet: " + one + "\n",
		"mgmt/other.yaml":           "fleetctl.dev/fleet: " + one + "\n",
	} {
		file := filepath.Join(dir, "providers/aws/v1", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{ManagementClusters: []v1alpha1.ManagementCluster{
		{Name: "a", Cloud: "aws", Generation: "v1"}, {Name: "b", Cloud: "aws", Generation: "v1"}, {Name: "c", Cloud: "gcp", Generation: "v1"},
	}}}
	got, err := New(dir, fleet).FleetTags()
	want := []FleetTag{
		{"providers/aws/v1/clusters/dev/shared.yml", 3, 25, one},
		{"providers/aws/v1/clusters/dev/shop/cluster.yaml", 6, 32, one},
		{"providers/aws/v1/clusters/dev/web/cluster.yaml", 4, 27, two},
		{"providers/aws/v1/clusters/dev/web/cluster.yaml", 7, 27, two},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestVCenters(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"dev/shop/cluster.yaml": "kind: Namespace\n---\nkind: HelmRelease\nspec:\n  values: {server: vc-1.example.com, thumbprint: AA}\n",
		"dev/web/cluster.yaml":  "kind: HelmRelease\nspec:\n  values: {server: vc-1.example.com}\n",
		"dev/raw/cluster.yaml":  "kind: VSphereCluster\nspec: {server: \"https://vc-2.example.com:8443/sdk\"}\n",
		"dev/other.yaml": "kind: ConfigMap\nspec: {server: vc-3.example.com}\n---\nkind: VSphereCluster\nspec: {server: " +
			"\"${VSPHERE_SERVER}\"}\n---\nkind: HelmRelease\nspec: {values: {server: [a]}}\n",
	} {
		file := filepath.Join(dir, "providers/vsphere/v1/clusters", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{ManagementClusters: []v1alpha1.ManagementCluster{{
		Name:  "a",
		Cloud: "vsphere", Generation: "v1",
	}}}}
	got, err := New(dir, fleet).VCenters()
	if want := []VCenter{{"vc-1.example.com", "AA"}, {"vc-2.example.com:8443", ""}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
