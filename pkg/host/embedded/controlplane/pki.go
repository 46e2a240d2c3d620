package controlplane

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// How long certificates are valid. A leaf certificate is renewed when less than a quarter of its validity is left. Each start checks
// that, and a running host checks it daily. A renewal needs no restart, because the programs read their files again.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// backdate keeps a new certificate valid after the clock was set back a little.
	backdate = 5 * time.Minute
)

// The names of the key pairs in the folder; each is NAME.crt and NAME.key.
const (
	authorityName         = "ca"
	servingName           = "serving" // of kube-apiserver, and of etcd for its only client
	etcdClientName        = "etcd-client"
	adminName             = "admin"
	runnerName            = "runner"
	controllerManagerName = "controller-manager"
	serviceAccountName    = "service-account" // signs tokens; a key without a certificate
)

// leaf is a certificate that the authority signs.
type leaf struct {
	name    string
	subject pkix.Name
	server  bool
}

// leaves are all leaf certificates. RBAC knows their users by the groups.
func leaves() []leaf {
	const masters = "system:masters"
	return []leaf{
		{name: servingName, subject: pkix.Name{CommonName: "fleetctl-embedded"}, server: true},
		{name: etcdClientName, subject: pkix.Name{CommonName: "kube-apiserver"}},
		{name: adminName, subject: pkix.Name{CommonName: "kubernetes-admin", Organization: []string{masters}}},
		{name: runnerName, subject: pkix.Name{CommonName: "fleetctl-runner", Organization: []string{masters}}},
		{name: controllerManagerName, subject: pkix.Name{CommonName: "system:kube-controller-manager"}},
	}
}

// servingNames and servingAddresses are the names and addresses of the API server, for clients on this machine and in a cluster.
var (
	servingNames = []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	servingAddresses = []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv4(10, 96, 0, 1).To4()}
)

// pki is the folder with the keys and certificates of one control plane.
type pki struct{ dir string }

func (p pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }

// ensure makes key pairs that are missing and renews those that are about to expire at the time now. It returns the names of the new
// key pairs.
func (p pki) ensure(now time.Time) (made []string, err error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	ca, fresh, err := p.authority(now)
	if err != nil {
		return nil, fmt.Errorf("certificate authority of the control plane: %w", err)
	}
	if fresh {
		made = append(made, authorityName)
	}
	for _, l := range leaves() {
		if !fresh && p.holds(l, ca, now) {
			continue
		}
		if err := p.issue(l, ca, now); err != nil {
			return made, fmt.Errorf("certificate %s of the control plane: %w", l.name, err)
		}
		made = append(made, l.name)
	}
	// This key is never renewed: Secrets hold tokens that are signed with it.
	private, err := readPEM(p.key(serviceAccountName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := p.newServiceAccountKey(); err != nil {
			return made, fmt.Errorf("key for service account tokens: %w", err)
		}
		made = append(made, serviceAccountName)
	case err != nil:
		return made, err
	default:
		if err := p.keepPublicKey(private); err != nil {
			return made, fmt.Errorf("public key for service account tokens: %w", err)
		}
	}
	return made, nil
}

// keepPublicKey writes the public key for service account tokens again if its file is missing or does not match the private key. Otherwise
// the API server would refuse all tokens.
func (p pki) keepPublicKey(private []byte) error {
	key, err := tokenKey(private)
	if err != nil {
		return fmt.Errorf("read %s: %w", p.key(serviceAccountName), err)
	}
	public, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return err
	}
	if there, err := readPEM(p.cert(serviceAccountName)); err == nil && bytes.Equal(there, public) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.writePublicKey(public)
}

func (p pki) writePublicKey(public []byte) error {
	return atomicfile.Write(p.cert(serviceAccountName), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600)
}

// signer is a certificate with its key.
type signer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authority reads the authority. It makes a new one if there is none, or if less than a quarter of its validity is left.
func (p pki) authority(now time.Time) (ca signer, fresh bool, err error) {
	ca, err = p.read(authorityName)
	if err == nil && lasts(ca.cert, now) {
		return ca, false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ca, false, err
	}
	key, err := newKey()
	if err != nil {
		return ca, false, err
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "fleetctl-embedded-ca"},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true,
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
	}
	ca, err = p.sign(authorityName, template, signer{cert: template, key: key}, key)
	return ca, true, err
}

// holds tells whether a key pair exists, is signed by ca, and lasts.
func (p pki) holds(l leaf, ca signer, now time.Time) bool {
	have, err := p.read(l.name)
	if err != nil || !lasts(have.cert, now) || have.cert.CheckSignatureFrom(ca.cert) != nil {
		return false
	}
	for _, name := range servingNames {
		if l.server && have.cert.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

// lasts tells whether more than a quarter of the certificate's validity is left. It is false for a certificate that is not valid yet.
func lasts(c *x509.Certificate, now time.Time) bool {
	life := c.NotAfter.Sub(c.NotBefore)
	return now.After(c.NotBefore) && c.NotAfter.Sub(now) > life/4
}

func (p pki) issue(l leaf, ca signer, now time.Time) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject: l.subject, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore:   now.Add(-backdate), NotAfter: now.Add(leafLife),
	}
	if l.server {
		// etcd is also a client of itself when it starts its gateway.
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames, template.IPAddresses = servingNames, servingAddresses
	}
	_, err = p.sign(l.name, template, ca, key)
	return err
}

// sign writes the key and immediately afterwards the certificate. So the two files mismatch only for an instant.
func (p pki) sign(name string, template *x509.Certificate, by signer, key *ecdsa.PrivateKey) (signer, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return signer{}, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return signer{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return signer{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return signer{}, err
	}
	if err := atomicfile.Write(p.key(name), keyPEM, 0o600); err != nil {
		return signer{}, err
	}
	err = atomicfile.Write(p.cert(name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	return signer{cert: cert, key: key}, err
}

// tokenKeyBits is the size of a new key for service account tokens, the one that every cloud accepts.
const tokenKeyBits = 2048

// newServiceAccountKey makes the key that signs service account tokens. It is an RSA key because of the clouds that are to accept these
// tokens: all of them accept RS256, and Azure promises to accept nothing else.
func (p pki) newServiceAccountKey() error {
	key, err := rsa.GenerateKey(rand.Reader, tokenKeyBits)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := p.writePublicKey(public); err != nil {
		return err
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return atomicfile.Write(p.key(serviceAccountName), private, 0o600)
}

// tokenKey returns the public half of a key for service account tokens. An older fleetctl has made keys for elliptic curves.
func tokenKey(private []byte) (crypto.PublicKey, error) {
	if key, err := x509.ParseECPrivateKey(private); err == nil {
		return key.Public(), nil
	}
	key, err := x509.ParsePKCS1PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}

// read reads a key pair. The error is fs.ErrNotExist if it is missing or incomplete.
func (p pki) read(name string) (signer, error) {
	cert, err := readPEM(p.cert(name))
	if err != nil {
		return signer{}, err
	}
	key, err := readPEM(p.key(name))
	if err != nil {
		return signer{}, err
	}
	c, err := x509.ParseCertificate(cert)
	if err != nil {
		return signer{}, fmt.Errorf("read %s: %w", p.cert(name), err)
	}
	k, err := x509.ParseECPrivateKey(key)
	if err != nil {
		return signer{}, fmt.Errorf("read %s: %w", p.key(name), err)
	}
	if !k.PublicKey.Equal(c.PublicKey) {
		// A kill between the two writes leaves such a pair. It counts as missing.
		return signer{}, fmt.Errorf("read %s: the key is not the certificate's: %w", p.key(name), fs.ErrNotExist)
	}
	return signer{cert: c, key: k}, nil
}

func readPEM(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(bytes.Trim(raw, "\x00 \n")) == 0 { // after a power cut
		return nil, fmt.Errorf("read %s: it is empty: %w", path, fs.ErrNotExist)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("read %s: it is not a PEM file", path)
	}
	return block.Bytes, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
