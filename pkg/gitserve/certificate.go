package gitserve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// authorityTime is how long an authority is valid.
	authorityTime = 10 * 365 * 24 * time.Hour
	// authorityLeft is the remaining validity below which Ensure replaces an authority, if its caller can tell Flux of the new one.
	authorityLeft = 365 * 24 * time.Hour
	// clockTolerance lets clients whose clock is late accept a new certificate.
	clockTolerance = 24 * time.Hour
)

// authority signs the certificates of one state folder's servers, one after the other. Flux trusts this authority alone, so a program that
// binds the port of a dead server cannot pass for the server.
type authority struct {
	// Certificate and Key are PEM.
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template("fleetctl git server", authorityTime)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &authority{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}, nil
}

func template(name string, lasts time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-clockTolerance), NotAfter: now.Add(lasts),
	}, nil
}

// pair parses the authority's certificate and key.
func (a *authority) pair() (*x509.Certificate, tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
	if err != nil {
		return nil, pair, errors.New("the authority of the git server cannot be read") // without err, which may quote the key
	}
	return pair.Leaf, pair, nil
}

// lasts tells whether the authority stays valid for longer than authorityLeft.
func (a *authority) lasts() bool {
	certificate, _, err := a.pair()
	return err == nil && time.Until(certificate.NotAfter) > authorityLeft
}

// issue makes the certificate of one server for hosts, the names and addresses by which clients reach it. The key stays in memory.
func (a *authority) issue(hosts ...string) (*tls.Config, error) {
	parent, pair, err := a.pair()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := template("fleetctl git server", 0)
	if err != nil {
		return nil, err
	}
	leaf.NotAfter = parent.NotAfter
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else if h != "" {
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, key.Public(), pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}, nil
}

// client is the configuration of a client that trusts this authority and no other.
func (a *authority) client() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.Certificate))
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
