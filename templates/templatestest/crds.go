// Package templatestest finds the CRDs of the objects in charts, for tests.
package templatestest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// crds are the files with the CRDs of the charts' objects, by Go module.
var crds = map[string][]string{
	"sigs.k8s.io/cluster-api@v1.14.2": {
		"core/config/crd/bases/*.yaml", "bootstrap/kubeadm/config/crd/bases/*.yaml", "controlplane/kubeadm/config/crd/bases/*.yaml",
	},
	"sigs.k8s.io/cluster-api/test@v1.14.0":             {"infrastructure/docker/config/crd/bases/*.yaml"},
	"sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0":  {"config/crd/bases/*.yaml"},
	"sigs.k8s.io/cluster-api-provider-azure@v1.23.0":   {"config/crd/bases/*.yaml", "config/aso/crds.yaml"},
	"sigs.k8s.io/cluster-api-provider-gcp@v1.13.1":     {"config/crd/bases/*.yaml"},
	"sigs.k8s.io/cluster-api-provider-vsphere@v1.14.0": {"config/default/crd/bases/*.yaml"},
}

// CRDFiles returns the paths of the files with the CRDs of Cluster API and of all providers that the charts use.
func CRDFiles(t testing.TB) []string {
	t.Helper()
	var all []string
	for module, patterns := range crds {
		dir := moduleDir(t, module)
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("no CRDs in %s of %s (%v)", pattern, module, err)
			}
			all = append(all, files...)
		}
	}
	return all
}

func moduleDir(t testing.TB, module string) string {
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
