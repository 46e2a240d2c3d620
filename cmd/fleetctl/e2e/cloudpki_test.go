//go:build e2e && clouds

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pkiDir is what kubeadm makes of the authorities that Cluster API gives a machine of the control plane.
type pkiDir string

func (p pkiDir) cert(name string) string { return filepath.Join(string(p), name+".crt") }
func (p pkiDir) key(name string) string  { return filepath.Join(string(p), name+".key") }

const (
	clusterAuthority = "ca"
	etcdAuthority    = "etcd/ca"

	apiServerPair     = "apiserver"
	kubeletClientPair = "apiserver-kubelet-client"
	etcdClientPair    = "apiserver-etcd-client"
	etcdPair          = "etcd/server"
	adminPair         = "admin"
	managerPair       = "controller-manager"
)

// newPKI writes the given files of the cluster into dir, and signs with them the certificates of one machine, for these hosts.
func newPKI(dir string, given map[string]string, hosts ...string) (pkiDir, error) {
	p := pkiDir(dir)
	for name, content := range given {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	const masters = "system:masters"
	for _, one := range []struct {
		name, authority string
		subject         pkix.Name
	}{
		{apiServerPair, clusterAuthority, pkix.Name{CommonName: "kube-apiserver"}},
		{kubeletClientPair, clusterAuthority, pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{masters}}},
		{adminPair, clusterAuthority, pkix.Name{CommonName: "kubernetes-admin", Organization: []string{masters}}},
		{managerPair, clusterAuthority, pkix.Name{CommonName: "system:kube-controller-manager"}},
		{etcdPair, etcdAuthority, pkix.Name{CommonName: "etcd"}},
		{etcdClientPair, etcdAuthority, pkix.Name{CommonName: "kube-apiserver-etcd-client", Organization: []string{masters}}},
	} {
		if err := p.sign(one.name, one.authority, one.subject, hosts); err != nil {
			return "", fmt.Errorf("certificate %s: %w", one.name, err)
		}
	}
	return p, nil
}

func (p pkiDir) sign(name, authority string, subject pkix.Name, hosts []string) error {
	by, err := tls.LoadX509KeyPair(p.cert(authority), p.key(authority))
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	for _, host := range hosts {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(host))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Leaf, key.Public(), by.PrivateKey)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.key(name), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.cert(name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

// client speaks TLS as the owner of a pair.
func (p pkiDir) client(name, authority string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(p.cert(name), p.key(name))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	content, err := os.ReadFile(p.cert(authority))
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate", p.cert(authority))
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
