//go:build e2e

package handover

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// gate stands before a Git server or a registry, as a proxy stands before an API server. Without a run, it passes everything on.
type gate struct {
	proxy
	isWrite func(*http.Request) bool
	url     string
	ca      []byte // that has signed its certificate; nil for plain HTTP
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	current := g.run.Load()
	if current == nil {
		g.upstream.ServeHTTP(w, r)
		return
	}
	g.serve(w, r, current, g.isWrite(r))
}

// newRegistryGate serves a registry. Uploads and deletions are writes.
func newRegistryGate(t testing.TB, registry http.Handler) *gate {
	t.Helper()
	g := &gate{isWrite: func(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }}
	g.side, g.upstream = &side{name: "registry"}, registry
	server := httptest.NewServer(g)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	g.url = server.URL
	return g
}

// newGitGate stands before a Git server. A push is a write.
func newGitGate(t testing.TB, git *gittest.HTTPS) *gate {
	t.Helper()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(git.CA)
	at, err := url.Parse(git.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	g := &gate{isWrite: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/git-receive-pack") }}
	g.side = &side{name: "Git server"}
	g.upstream = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = at.Scheme, at.Host }, Transport: transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewUnstartedServer(g)
	certificate, ca := newCertificate(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	g.url, g.ca = server.URL+at.Path, ca
	return g
}
