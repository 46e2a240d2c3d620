package gitrepo_test

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// failing returns the URL of a proxy before a Git server. The proxy answers matching requests with a status and a page, and repeats the
// credential of the request.
func failing(t *testing.T, behind *gittest.HTTPS, match func(*http.Request) bool, status func() int, page string) (string, gitrepo.Auth) {
	t.Helper()
	backend, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: backend.Scheme, Host: backend.Host})
	proxy.Transport, _ = sameorigin.NewTransport(behind.CA)
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !match(r) {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "90")
		if page != "" {
			w.Header().Set("Content-Type", "text/html")
		}
		w.WriteHeader(status())
		_, _ = fmt.Fprintf(w, "%s\x1b[2J you sent %s", page, r.Header.Get("Authorization"))
	}))
	t.Cleanup(front.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return front.URL + backend.Path, gitrepo.Auth{Username: behind.Username, Token: behind.Token, CA: ca}
}

// If a Git server, or a proxy before it, answers without Git's protocol, the error of each request has the status and a hint. It does not
// contain the credential that the answer repeats.
func TestAnswersThatAreNone(t *testing.T) {
	behind := gittest.NewHTTPS(t, gittest.Options{})
	behind.Seed(t, "main", map[string]string{"a": "b"})
	basic := base64.StdEncoding.EncodeToString([]byte(behind.Username + ":" + behind.Token))
	const signIn = "<!DOCTYPE html><html><title>Sign in</title>"
	for _, tc := range []struct {
		status     int
		page       string
		kind       error
		want, hint string
	}{
		{400, "", nil, "it answers 400 Bad Request", ""},
		{429, "", gitrepo.ErrTooManyRequests, "it answers 429 Too Many Requests", "again in 1m30s"},
		{500, "", gitrepo.ErrUnavailable, "it answers 500 Internal Server Error:  [2J you sent ***", "again in a moment"},
		{502, signIn, gitrepo.ErrUnavailable, `it answers 502 Bad Gateway: the web page "Sign in"`, "again in a moment"},
		{503, "", gitrepo.ErrUnavailable, "it answers 503 Service Unavailable", "ask its operator"},
		{599, "", gitrepo.ErrUnavailable, "it answers 599", "again in a moment"},
		{407, "", gitrepo.ErrNetwork, "it answers 407 Proxy Authentication Required", "HTTPS_PROXY"},
		{410, "", gitrepo.ErrNotFound, "it answers 410 Gone", "check the URL"},
		{401, signIn, gitrepo.ErrAuth, `the web page "Sign in"`, "token"},
		{403, signIn, gitrepo.ErrAuth, `the web page "Sign in"`, "token"},
		{404, signIn, gitrepo.ErrNotFound, `the web page "Sign in"`, "check the URL"},
		{200, signIn, nil, `answers with the web page "Sign in"`, "wants a login"},
	} {
		for request, match := range map[string]func(*http.Request) bool{
			"references": func(*http.Request) bool { return true },
			"pack":       func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/git-upload-pack") },
			"push":       func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/git-receive-pack") },
		} {
			t.Run(fmt.Sprintf("%d %s", tc.status, request), func(t *testing.T) {
				at, auth := failing(t, behind, match, func() int { return tc.status }, tc.page)
				var err error
				switch request {
				case "references":
					_, err = gitrepo.Probe(t.Context(), at, auth, "main")
				case "pack":
					_, err = gitrepo.Clone(t.Context(), at, auth, "main", t.TempDir()+"/clone")
				case "push":
					err = gitrepo.CheckPush(t.Context(), at, auth, "main")
				}
				host, _ := url.Parse(at)
				switch {
				case err == nil:
					t.Fatal("it worked")
				case tc.kind != nil && !errors.Is(err, tc.kind):
					t.Errorf("%v is not %v", err, tc.kind)
				case !strings.Contains(err.Error(), tc.want), !strings.Contains(err.Error(), host.Host), !strings.Contains(diag.Hint(err), tc.hint):
					t.Errorf("%v (%s)", err, diag.Hint(err))
				}
				for _, never := range []string{"client error", behind.Token, basic, "\x1b", "<title>"} {
					if strings.Contains(err.Error(), never) {
						t.Errorf("%q is in %v", never, err)
					}
				}
			})
		}
	}
}
