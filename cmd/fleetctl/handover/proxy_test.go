//go:build e2e

package handover

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxy stands between a program and one side's API server. What a run asks for goes past its fault, which decides about each write.
type proxy struct {
	side       *side
	kubeconfig []byte
	upstream   http.Handler
	run        atomic.Pointer[run]
}

// newProxy serves TLS with a certificate of a separate CA. Clients need the proxy's token.
func newProxy(t testing.TB, s *side) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(s.host)
	if err != nil {
		t.Fatal(err)
	}
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p := &proxy{side: s, upstream: reverse}
	certificate, ca := newCertificate(t)
	server := httptest.NewUnstartedServer(p)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	config := clientcmdapi.NewConfig()
	config.Clusters[s.name] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[s.name] = &clientcmdapi.Context{Cluster: s.name, AuthInfo: "admin"}
	config.CurrentContext = s.name
	if p.kubeconfig, err = clientcmd.Write(*config); err != nil {
		t.Fatal(err)
	}
	return p
}

const token = "let-me-through"

// newCertificate is a CA's certificate for loopback, by itself, and as PEM.
func newCertificate(t testing.TB) (certificate tls.Certificate, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// changesNothing are reviews, which are asked for by POST.
var changesNothing = []string{
	"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews", "subjectaccessreviews", "tokenreviews",
}

func isWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Has("dryRun") {
		return false
	}
	return !slices.Contains(changesNothing, path.Base(r.URL.Path))
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	current := p.run.Load()
	if current == nil || r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if current.away != nil && current.away(p.side.name) {
		panic(http.ErrAbortHandler)
	}
	if current.expired != nil && current.expired(p.side.name) {
		answer(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	}
	p.serve(w, r, current, isWrite(r))
}

// serve passes a request on, or has the run's fault act on it, if it is a write.
func (p *proxy) serve(w http.ResponseWriter, r *http.Request, current *run, isWrite bool) {
	if !isWrite {
		current.reads.Add(1)
		p.upstream.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // a program that is killed while it sends has sent nothing
	}
	does, counted := current.note(p.side.name, r.Method, r.URL.Path)
	if !counted {
		panic(http.ErrAbortHandler)
	}
	defer current.inside.Done()
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.act(w, r, current, does)
}

// act does the deed to a write. The server finishes a write that is passed on, even if the client no longer waits for the answer.
func (p *proxy) act(w http.ResponseWriter, r *http.Request, current *run, does deed) {
	applied := r.WithContext(context.WithoutCancel(r.Context()))
	switch does {
	case pass:
		p.upstream.ServeHTTP(w, applied)
		return
	case killBefore:
		current.kill()
	case killAfter:
		p.upstream.ServeHTTP(httptest.NewRecorder(), applied)
		current.kill()
	case cutAfter:
		p.upstream.ServeHTTP(httptest.NewRecorder(), applied)
	case hold:
		<-r.Context().Done()
	case answer409:
		answer(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	case answer429:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		return
	case answer500:
		answer(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		return
	case answer503:
		answer(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	panic(http.ErrAbortHandler)
}

// answer says no as an API server does.
func answer(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // who has hung up does not want it
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "the test says no",
	})
}
