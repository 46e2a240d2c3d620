package gitrepo_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// A Git server that redirects elsewhere is not followed with a token, nor without TLS; within itself it may move a repository.
func TestRedirects(t *testing.T) {
	var strangers atomic.Int32
	stranger := http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { strangers.Add(1) })
	open := httptest.NewServer(stranger)
	defer open.Close()
	actual := gittest.NewHTTPS(t, gittest.Options{})
	actual.Seed(t, "main", map[string]string{"a": "b"})
	var to string
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+strings.TrimPrefix(r.URL.Path, "/old.git")+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
	}))
	defer front.Close()
	ca := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), actual.CA...)
	auth := gitrepo.Auth{Username: actual.Username, Token: actual.Token, CA: ca}
	for _, to = range []string{actual.URL, strings.Replace(actual.URL, "127.0.0.1", "localhost", 1)} {
		if _, err := gitrepo.Probe(t.Context(), front.URL+"/old.git", auth, "main"); !errors.Is(err, gitrepo.ErrRedirect) {
			t.Errorf("read over %s: %v", to, err)
		}
		if err := gitrepo.CheckPush(t.Context(), front.URL+"/old.git", auth,
			"main"); !errors.Is(err, gitrepo.ErrRedirect) || diag.Hint(err) == "" {
			t.Errorf("push over %s: %v", to, err)
		}
	}
	for _, to = range []string{open.URL, strings.Replace(front.URL, "https", "http", 1)} {
		if _, err := gitrepo.Probe(t.Context(), front.URL+"/old.git", auth, "main"); err == nil {
			t.Errorf("it was read over %s", to)
		}
		if err := gitrepo.CheckPush(t.Context(), front.URL+"/old.git", auth, "main"); err == nil {
			t.Errorf("%s was asked", to)
		}
	}
	to = open.URL
	if _, err := gitrepo.Probe(t.Context(), front.URL+"/old.git", gitrepo.Auth{CA: ca}, "main"); err == nil {
		t.Error("it was read over http")
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("%d requests went on over http", n)
	}
}

func TestRedirectWithinTheServer(t *testing.T) {
	actual := gittest.NewHTTPS(t, gittest.Options{})
	commit := actual.Seed(t, "main", map[string]string{"a": "b"})
	backend, err := url.Parse(actual.URL)
	if err != nil {
		t.Fatal(err)
	}
	pool := actual.CA
	front := httptest.NewTLSServer(moved(t, backend, pool))
	defer front.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	auth := gitrepo.Auth{Username: actual.Username, Token: actual.Token, CA: ca}
	state, err := gitrepo.Probe(t.Context(), front.URL+"/old.git", auth, "main")
	if err != nil || state.Head != commit {
		t.Errorf("%+v, %v", state, err)
	}
}

// A user in the URL may be a token.
func TestErrorsHaveNoUser(t *testing.T) {
	_, err := gitrepo.Probe(t.Context(), "https://ghp_s3cret@127.0.0.1:1/a/b", gitrepo.Auth{}, "main")
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "127.0.0.1:1/a/b") {
		t.Error(err)
	}
}

// moved redirects /old.git to /fleet.git, which it has from the server behind it.
func moved(t *testing.T, backend *url.URL, ca []byte) http.Handler {
	t.Helper()
	rt, found := sameorigin.NewTransport(ca)
	if !found {
		t.Fatal("the server behind has no authority")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, old := strings.CutPrefix(r.URL.Path, "/old.git"); old {
			http.Redirect(w, r, "/fleet.git"+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: backend.Scheme, Host: backend.Host})
		proxy.Transport = rt
		proxy.ServeHTTP(w, r)
	})
}
