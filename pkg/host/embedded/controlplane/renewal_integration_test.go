//go:build integration

package controlplane_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// clock is one that a test sets.
type clock struct {
	mu  sync.Mutex
	now func() time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *clock) set(now func() time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// presented is the certificate with which a server on loopback shows itself to who has the API server's key for etcd.
func presented(t *testing.T, dir, address string) (*x509.Certificate, error) {
	t.Helper()
	pki := filepath.Join(dir, "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "etcd-client.crt"), filepath.Join(pki, "etcd-client.key"))
	authority, caErr := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err := errors.Join(err, caErr); err != nil { // key and certificate are written one after the other
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// wantPresented waits until a server shows a certificate whose end is as wanted, and returns that.
func wantPresented(t *testing.T, dir, address string, ok func(end time.Time) bool) time.Time {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		shown, err := presented(t, dir, address)
		if err == nil && ok(shown.NotAfter) {
			return shown.NotAfter
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s shows the certificate %+v, %v", address, shown, err)
		}
	}
}

// TestRenewalWhileItRuns lets certificates expire under a control plane. The running programs take the new certificates without a restart,
// and after a crash each program reaches the others with them.
func TestRenewalWhileItRuns(t *testing.T) {
	const short = 20 * time.Second
	dir, at := t.TempDir(), &clock{now: time.Now}
	if err := controlplane.MakeKeys(dir, time.Now().AddDate(-2, 0, 0)); err != nil { // the authority is one of long ago
		t.Fatal(err)
	}
	c := start(t, controlplane.Options{Dir: dir, Now: at.Now, RenewalCheck: 100 * time.Millisecond})
	var before []process.Identity
	for _, p := range c.Processes() {
		if err := p.AwaitReady(t.Context(), 0); err != nil { // nobody has waited for the last of them
			t.Fatal(err)
		}
		before = append(before, p.Status().Identity)
	}
	etcd, server := etcdAddress(t, dir), strings.TrimPrefix(c.Config().Host, "https://")
	if _, err := client(t, c).CoreV1().Namespaces().Create(t.Context(), namespace("kept"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	// By a clock that is a year late, new certificates are about to expire, and older ones are from the future.
	late := time.Now().Add(short).Add(-controlplane.LeafLife)
	at.set(func() time.Time { return late })
	soon := func(end time.Time) bool { return end.Before(time.Now().Add(2 * short)) }
	wantPresented(t, dir, etcd, soon)
	expiry := wantPresented(t, dir, server, soon)
	at.set(time.Now)
	renewed := func(end time.Time) bool { return end.After(time.Now().Add(short * 10)) }
	wantPresented(t, dir, etcd, renewed)
	wantPresented(t, dir, server, renewed)
	for i, p := range c.Processes() {
		if p.Status().Identity != before[i] {
			t.Errorf("%s was started anew", p.Name())
		}
	}

	<-time.After(time.Until(expiry) + time.Second) // now the short ones hold no more
	for _, p := range c.Processes()[:2] {
		crash(t, c, p, "kept")
	}
}

func etcdAddress(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "ports.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ports struct{ Etcd int }
	if err := json.Unmarshal(raw, &ports); err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(ports.Etcd))
}
