//go:build integration

package controlplane_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
)

// TestLeaseEndsWithItsCertificate is what docs/tasks/autoscaler.md builds on: a program that holds a lease on a workload cluster, as the
// cluster-autoscaler does with the deadlines below, cannot renew it once the certificate in its kubeconfig has ended, though its connection
// is still open. So it ends, and what starts in its place reads the kubeconfig that Cluster API has put there meanwhile, and takes the
// lease.
func TestLeaseEndsWithItsCertificate(t *testing.T) {
	const life = 8 * time.Second
	dir := t.TempDir()
	c := start(t, controlplane.Options{Dir: dir})
	if _, err := client(t, c).CoreV1().Namespaces().Create(t.Context(), namespace("autoscaler"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	old, end := elect(t, credential(t, c.Config(), dir, life), "old"), time.Now().Add(life)
	happens(t, old.leads, "the program takes the lease")
	select {
	case <-old.ended:
		if time.Now().Before(end) {
			t.Fatalf("the lease was lost %s before the certificate ended", time.Until(end))
		}
	case <-time.After(life + leaseDuration + 10*time.Second):
		t.Fatal("the program holds the lease with a certificate that has ended")
	}
	renewed := elect(t, credential(t, c.Config(), dir, time.Hour), "renewed")
	happens(t, renewed.leads, "the program with the new kubeconfig takes the lease")
}

// The cluster-autoscaler's defaults: --leader-elect-lease-duration, -renew-deadline and -retry-period.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// candidate is a program that wants the lease.
type candidate struct{ leads, ended chan struct{} }

func elect(t *testing.T, config *rest.Config, name string) *candidate {
	t.Helper()
	c := &candidate{make(chan struct{}), make(chan struct{})}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "autoscaler", Name: "cluster-autoscaler"}, Client: clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(c.leads) },
			OnStoppedLeading: func() { close(c.ended) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(t.Context())
	return c
}

func happens(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(leaseDuration + patience):
		t.Fatalf("in vain: %s", what)
	}
}

// credential is a configuration like config with an administrator's certificate that ends after a while, of the control plane in a folder.
func credential(t *testing.T, config *rest.Config, dir string, life time.Duration) *rest.Config {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(filepath.Join(dir, "pki", "ca.crt"), filepath.Join(dir, "pki", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "autoscaler", Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(life), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	out := rest.CopyConfig(config)
	out.CertData, out.KeyData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: rawKey})
	out.CertFile, out.KeyFile = "", ""
	return out
}
