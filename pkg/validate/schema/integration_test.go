//go:build integration

package schema

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// crds are files of the providers' Go modules.
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

// What the charts render, a real API server takes (see templates): it has to pass here as well, and with a field too many it must not.
func TestRealCRDs(t *testing.T) {
	s := NewSet()
	for module, patterns := range crds {
		out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
		if err != nil {
			t.Fatal(err)
		}
		var download struct{ Dir string }
		if err := json.Unmarshal(out, &download); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(download.Dir, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("no CRDs in %s of %s (%v)", pattern, module, err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Add(file, content); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	goldens, err := filepath.Glob("../../../templates/testdata/golden/*.yaml")
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	checked := 0
	for _, golden := range goldens {
		content, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range Documents(content) {
			encoded, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(encoded, []byte("null")) {
				continue
			}
			checked++
			o := fromJSON(t, encoded)
			problems, err := s.Check(t.Context(), o)
			if err != nil {
				t.Errorf("%s: %v: %v", golden, o["kind"], err)
			}
			for _, p := range problems {
				t.Errorf("%s: %v: %s %s: %s", golden, o["kind"], p.Type, p.Path, p.Summary)
			}
			o["replicaz"] = int64(3)
			if problems, _ := s.Check(t.Context(), o); len(problems) != 1 || problems[0].Type != Unknown || problems[0].Path != "replicaz" {
				t.Errorf("%s: %v with a field too many: %v", golden, o["kind"], problems)
			}
		}
	}
	t.Logf("%d objects", checked)
}
