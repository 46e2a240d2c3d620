package gittest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// HTTPS is a running Git server over TLS.
type HTTPS struct {
	*Repo
	// URL of the repository.
	URL string
	// Username and Token that may read and write; ReadToken may only read.
	Username, Token, ReadToken string
	// CA is the PEM certificate of the authority that has signed the server's.
	CA []byte

	fetches atomic.Int64
}

// Fetches is how often somebody has asked with credentials what there is to fetch.
func (s *HTTPS) Fetches() int64 { return s.fetches.Load() }

// NewHTTPS starts a server that asks for credentials. It ends with the test.
func NewHTTPS(t testing.TB, opts Options) *HTTPS {
	t.Helper()
	opts = opts.withDefaults(t)
	repo := NewRepo(t, opts)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", opts.Listen)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	s := &HTTPS{
		Repo: repo, URL: "https://" + net.JoinHostPort(opts.Host, port) + "/fleet.git",
		Username: "git", Token: rand.Text(), ReadToken: rand.Text(),
	}
	var certificate tls.Certificate
	s.CA, certificate = issue(t, opts.Host)
	server := &http.Server{
		Handler: s.withAPI(opts.API, s.handler(t)), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // it returns when Cleanup closes it
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// withAPI lets a forge's API answer below /api/, and the repository below an owner's name as forges have it.
func (s *HTTPS) withAPI(api func(token string) http.Handler, repo http.Handler) http.Handler {
	if api == nil {
		return repo
	}
	s.URL = strings.Replace(s.URL, "/fleet.git", "/platform/fleet.git", 1)
	mux := http.NewServeMux()
	mux.Handle("/api/", api(s.Token))
	mux.Handle("/platform/", http.StripPrefix("/platform", repo))
	return mux
}

func (s *HTTPS) handler(t testing.TB) http.Handler {
	t.Helper()
	backend := &cgi.Handler{
		Path:   Require(t, "git", "git"),
		Args:   []string{"http-backend"},
		Env:    append(Environment(), "GIT_PROJECT_ROOT="+filepath.Dir(s.Dir), "GIT_HTTP_EXPORT_ALL=1"),
		Logger: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Stderr: io.Discard,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		write := user == s.Username && subtle.ConstantTimeCompare([]byte(password), []byte(s.Token)) == 1
		read := write || user == s.Username && subtle.ConstantTimeCompare([]byte(password), []byte(s.ReadToken)) == 1
		switch {
		case !read:
			w.Header().Set("WWW-Authenticate", `Basic realm="gittest"`)
			http.Error(w, "no such user", http.StatusUnauthorized)
		case !write && (strings.HasSuffix(req.URL.Path, "/git-receive-pack") || req.URL.Query().Get("service") == "git-receive-pack"):
			http.Error(w, "this token is read-only", http.StatusForbidden)
		default:
			if req.URL.Query().Get("service") == "git-upload-pack" {
				s.fetches.Add(1)
			}
			backend.ServeHTTP(w, req)
		}
	})
}

// issue makes an authority and a certificate of it for host.
func issue(t testing.TB, host string) ([]byte, tls.Certificate) {
	t.Helper()
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gittest authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = []string{host}
	}
	authorityKey, leafKey := newKey(t), newKey(t)
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, leafKey.Public(), authorityKey)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})
	return ca, tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	return key
}
