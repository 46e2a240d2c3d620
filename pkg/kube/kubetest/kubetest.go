// Package kubetest gives tests a real API server: etcd and kube-apiserver, without controllers and nodes.
package kubetest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

// Start runs an API server until t ends and returns a client for it and its administrator's kubeconfig. It fails t where
// the programs are missing: a test that is skipped proves nothing.
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
