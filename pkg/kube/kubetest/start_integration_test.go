//go:build integration

package kubetest

import (
	"net"
	"net/url"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

// A port that was free when the test looked may be taken when etcd starts. Start then tries another port.
func TestStartsWithOtherPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	programs, tries := testprograms.ControlPlane(t), 0
	env := testprograms.Start(t, func() *envtest.Environment {
		tries++
		env := &envtest.Environment{BinaryAssetsDirectory: programs}
		if tries == 1 {
			env.ControlPlane.Etcd = &envtest.Etcd{URL: &url.URL{Scheme: "http", Host: taken.Addr().String()}}
		}
		return env
	})
	if tries != 2 || env.Config == nil {
		t.Errorf("%d tries", tries)
	}
}
