// Package kubetest gives tests a real API server: etcd and kube-apiserver, without controllers and nodes.
package kubetest

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Assets is the environment variable that names the folder with the programs etcd and kube-apiserver.
const Assets = "KUBEBUILDER_ASSETS"

// Start runs an API server until t ends and returns a client for it and its administrator's kubeconfig. It fails t where
// the programs are missing: a test that is skipped proves nothing.
func Start(t *testing.T) (*kube.Client, []byte) {
	t.Helper()
	if os.Getenv(Assets) == "" {
		t.Fatalf("%s is not set: it names the folder with etcd and kube-apiserver", Assets)
	}
	env := &envtest.Environment{}
	if _, err := env.Start(); err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	client, err := kube.New(env.KubeConfig, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client, env.KubeConfig
}
