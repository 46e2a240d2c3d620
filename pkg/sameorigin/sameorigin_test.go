package sameorigin_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// server answers with reply, and records the requests.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
	reply http.HandlerFunc
}

func start(t *testing.T, tls bool, reply http.HandlerFunc) *server {
	t.Helper()
	s := &server{reply: reply}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Clone(t.Context()))
		s.mu.Unlock()
		s.reply(w, r)
	})
	if tls {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// bearer adds a token to each request, as the clients of forges, Kubernetes and registries do.
type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer s3cret")
	r.Header.Set("Private-Token", "s3cret")
	return b.next.RoundTrip(r)
}

func trusting(s *server) http.RoundTripper {
	rt, _ := sameorigin.NewTransport(nil)
	rt.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone() // all test servers have one certificate
	return rt
}

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func do(t *testing.T, client *http.Client, method, address string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader("s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "content") }

// No redirect, with any status, takes a request to another port, name or scheme.
func TestBind(t *testing.T) {
	other := start(t, true, ok)
	open := start(t, false, ok)
	var to string
	status := 0
	home := start(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			ok(w, r)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	client := &http.Client{Transport: bearer{sameorigin.Bind(trusting(home), parse(t, home.URL))}}
	port := parse(t, home.URL).Port()
	for _, status = range []int{301, 302, 303, 307, 308} {
		for _, to = range []string{
			other.URL, open.URL, "http://127.0.0.1:" + port + "/end", "https://example.com:" + port + "/end", "//" + parse(t, other.URL).Host + "/",
			"https://127.0.0.1:" + port + "@" + parse(t, other.URL).Host + "/",
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				_, err := do(t, client, method, home.URL+"/start")
				refused := (*sameorigin.Error)(nil)
				if !errors.As(err, &refused) || refused.From != home.URL {
					t.Errorf("%d to %s: %v", status, to, err)
				}
			}
		}
		to = "/end"
		if got, err := do(t, client, http.MethodGet, home.URL+"/start"); err != nil || got != "content" {
			t.Errorf("%d within the server: %q, %v", status, got, err)
		}
	}
	// A link in an answer is refused like a redirect.
	if _, err := do(t, client, http.MethodGet, other.URL+"/next"); err == nil {
		t.Error("another server was asked")
	}
	if n := len(other.requests()) + len(open.requests()); n != 0 {
		t.Errorf("%d requests left the server", n)
	}
}

func TestRegistry(t *testing.T) {
	open := start(t, false, ok)
	store := start(t, true, ok)
	var to string
	home := start(t, true, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) })
	registry := parse(t, home.URL).Host
	client := &http.Client{Transport: bearer{sameorigin.Registry(trusting(home), registry)}}
	const blob = "/v2/a/b/blobs/sha256:00"
	to = store.URL + "/bucket?signature=x"
	if got, err := do(t, client, http.MethodGet, home.URL+blob); err != nil || got != "content" {
		t.Errorf("content from a store: %q, %v", got, err)
	}
	if asked := store.requests(); len(asked) != 1 || asked[0].Header.Get("Authorization") != "" || asked[0].Header.Get("Private-Token") != "" {
		t.Errorf("the store was asked with %+v", asked)
	}
	// A redirect back from the store gets no credential either: the redirect may not be the registry's.
	store.reply = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, home.URL+"/back", http.StatusFound) }
	before := len(home.requests())
	home.reply = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			ok(w, r)
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	}
	if _, err := do(t, client, http.MethodGet, home.URL+blob); err != nil {
		t.Error(err)
	}
	if last := home.requests()[len(home.requests())-1]; len(home.requests()) != before+2 || last.Header.Get("Authorization") != "" {
		t.Errorf("the way back was asked with %+v", last.Header)
	}
	seen := len(store.requests())
	for _, path := range []string{"/v2/", "/v2/a/manifests/latest", "/token?service=x", "/token?x=/v2/a/blobs/"} {
		if _, err := do(t, client, http.MethodGet, home.URL+path); !isRefusal(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := do(t, client, http.MethodPost, home.URL+"/token"); !isRefusal(err) {
		t.Errorf("a request for a token: %v", err)
	}
	to = open.URL
	if _, err := do(t, client, http.MethodGet, home.URL+blob); !isRefusal(err) {
		t.Errorf("content over http: %v", err)
	}
	to = strings.Replace(home.URL, "https", "http", 1)
	if _, err := do(t, client, http.MethodGet, home.URL+blob); !isRefusal(err) {
		t.Errorf("the same host over http: %v", err)
	}
	// With TLS, the registry may name any token service. Without TLS, the token service must be the registry itself, on this machine.
	plain := &http.Client{Transport: bearer{sameorigin.Registry(trusting(home), parse(t, open.URL).Host)}}
	if _, err := do(t, plain, http.MethodGet, open.URL+"/token"); err != nil {
		t.Error(err)
	}
	for _, address := range []string{strings.Replace(open.URL, "127.0.0.1", "localhost", 1), "http://registry.example.com/token"} {
		inClear := (*sameorigin.ClearError)(nil)
		if _, err := do(t, plain, http.MethodGet, address); !errors.As(err, &inClear) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if len(store.requests()) != seen || len(open.requests()) != 1 {
		t.Errorf("%d and %d requests left the registry", len(store.requests())-seen, len(open.requests())-1)
	}
}

func isRefusal(err error) bool {
	refused := (*sameorigin.Error)(nil)
	return errors.As(err, &refused)
}

func TestDownload(t *testing.T) {
	open := start(t, false, ok)
	other := start(t, true, ok)
	var to string
	home := start(t, true, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	client := &http.Client{Transport: sameorigin.Download(trusting(home))}
	to = other.URL
	if got, err := do(t, client, http.MethodGet, home.URL); err != nil || got != "content" {
		t.Errorf("from elsewhere: %q, %v", got, err)
	}
	to = open.URL
	if _, err := do(t, client, http.MethodGet, home.URL); !isRefusal(err) {
		t.Errorf("over http: %v", err)
	}
	other.reply = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, open.URL, http.StatusFound) }
	to = other.URL
	if _, err := do(t, client, http.MethodGet, home.URL); !isRefusal(err) {
		t.Errorf("over http at the second step: %v", err)
	}
}

func TestSame(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"https://a.example/x", "https://A.example:443/y", true},
		{"https://a.example", "https://a.example:0443", true},
		{"https://a.example", "HTTPS://a.example", true},
		{"https://[::1]:8443", "https://[0:0::1]:8443", true},
		{"https://a.example", "http://a.example", false},
		{"https://a.example", "http://a.example:443", false},
		{"http://a.example", "https://a.example", false},
		{"https://a.example", "https://b.a.example", false},
		{"https://a.example", "https://a.example.", false},
		{"https://a.example", "https://a.example:8443", false},
		{"https://a.example", "https://a.example@b.example", false},
	} {
		if got := sameorigin.Same(parse(t, tc.a), parse(t, tc.b)); got != tc.same {
			t.Errorf("%s and %s: %v", tc.a, tc.b, got)
		}
	}
}

// Go quotes a proxy address that it cannot parse, with its password.
func TestProxyPassword(t *testing.T) {
	for _, proxy := range []string{
		"http://robot:s3cr%zz@proxy.example:3128", `http://robot:s3"cr et@proxy.example:x`,
		"http://robot:s3cr\tet@proxy:1",
	} {
		t.Run("", func(t *testing.T) {
			clean := withProxy(t, proxy)
			if strings.Contains(clean, "s3") || !strings.Contains(clean, "proxy") {
				t.Error(clean)
			}
		})
	}
}

// withProxy returns the error of a request through an invalid proxy.
func withProxy(t *testing.T, proxy string) string {
	t.Helper()
	t.Setenv("HTTPS_PROXY", proxy)
	rt, _ := sameorigin.NewTransport(nil)
	rt.Proxy = func(*http.Request) (*url.URL, error) { // like http.ProxyFromEnvironment, which reads the environment only once
		_, err := url.Parse(proxy)
		return nil, errors.Join(errors.New("invalid proxy address "+proxy), err)
	}
	client := &http.Client{Transport: sameorigin.Bind(rt, &url.URL{Scheme: "https", Host: "git.example"})}
	_, err := do(t, client, http.MethodGet, "https://git.example/x")
	if err == nil {
		t.Fatal("a proxy that cannot be used was used")
	}
	return err.Error()
}

func TestDisplay(t *testing.T) {
	for raw, want := range map[string]string{
		"https://u:p@h.example/x?token=y#z": "https://h.example/x",
		"127.0.0.1:6443":                    "127.0.0.1:6443",
		"u:p@127.0.0.1:6443":                "127.0.0.1:6443",
		"https://u:p%zz@h.example/":         "an address that cannot be read",
	} {
		if got := sameorigin.Display(raw); got != want {
			t.Errorf("%s: %s", raw, got)
		}
	}
}
