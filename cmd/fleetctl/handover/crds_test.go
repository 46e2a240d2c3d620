//go:build e2e

package handover

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// module that has CRDs, and the provider that clusterctl would note on them: none is for what clusterctl does not install.
type module struct {
	path, pattern, provider string
}

var modules = []module{
	{"sigs.k8s.io/cluster-api@v1.14.2", "cmd/clusterctl/config/crd/bases/*providers.yaml", "cluster-api"},
	{"sigs.k8s.io/cluster-api@v1.14.2", "core/config/crd/bases/*.yaml", "cluster-api"},
	{"sigs.k8s.io/cluster-api@v1.14.2", "bootstrap/kubeadm/config/crd/bases/*.yaml", "bootstrap-kubeadm"},
	{"sigs.k8s.io/cluster-api@v1.14.2", "controlplane/kubeadm/config/crd/bases/*.yaml", "control-plane-kubeadm"},
	{"sigs.k8s.io/cluster-api/test@v1.14.0", "infrastructure/docker/config/crd/bases/*_docker*.yaml", "infrastructure-docker"},
	{"github.com/fluxcd/source-controller@v1.9.5", "config/crd/bases/*.yaml", ""},
	{"github.com/fluxcd/kustomize-controller@v1.9.5", "config/crd/bases/*.yaml", ""},
	{"github.com/fluxcd/helm-controller@v1.6.4", "config/crd/bases/*.yaml", ""},
}

// unused are kinds that the fleet has none of: each costs every program and every look a request.
var unused = []string{
	"Bucket", "ExternalArtifact", "HelmChart", "OCIRepository", "MachinePool", "DockerMachinePool", "DockerMachinePoolTemplate",
	"ExtensionConfig", "MachineDrainRule",
}

// crds are those of Cluster API, of its docker provider and of Flux, labelled as clusterctl labels them, without what needs a controller:
// conversion. testdata/crds.yaml adds in short what other providers have: an identity for all namespaces, and an object without labels.
func crds(t testing.TB) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, m := range modules {
		files, err := filepath.Glob(filepath.Join(moduleDir(t, m.path), m.pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no CRDs in %s of %s (%v)", m.pattern, m.path, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(content, crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if slices.Contains(unused, crd.Spec.Names.Kind) {
				continue
			}
			crd.Spec.Conversion = nil
			if m.provider != "" {
				crd.Labels = map[string]string{
					"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": m.provider, "cluster.x-k8s.io/v1beta2": "v1beta2",
				}
			}
			all = append(all, crd)
		}
	}
	content, err := os.ReadFile("testdata/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			t.Fatal(err)
		}
		all = append(all, crd)
	}
	return all
}

func moduleDir(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatalf("download %s: %v", module, err)
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(download.Dir)
}
