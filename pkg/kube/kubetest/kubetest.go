// Package kubetest gives tests a real API server: etcd and kube-apiserver, without controllers or nodes.
package kubetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

// Start runs an API server until the end of t. It returns a client and the administrator's kubeconfig. It fails t if the programs are
// missing, because a skipped test proves nothing.
func Start(t *testing.T) (*kube.Client, []byte) {
	t.Helper()
	programs := testprograms.ControlPlane(t)
	env := testprograms.Start(t, func() *envtest.Environment { return &envtest.Environment{BinaryAssetsDirectory: programs} })
	client, err := kube.New(env.KubeConfig, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client, env.KubeConfig
}

// ClusterAPI installs CRDs of Cluster API from the linked module, by the plural names of their kinds.
func ClusterAPI(t *testing.T, c *kube.Client, plurals ...string) {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, plural := range plurals {
		crd, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "core", "config", "crd", "bases",
			"cluster.x-k8s.io_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ApplyYAML(t.Context(), c, crd, kube.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
}

// ApplyYAML applies a manifest.
func ApplyYAML(ctx context.Context, c *kube.Client, manifest []byte, opts kube.ApplyOptions) ([]kube.Change, error) {
	objects, err := kube.ParseYAML(manifest)
	if err != nil {
		return nil, err
	}
	return c.Apply(ctx, objects, opts)
}
