package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// If an API server, or a proxy before it, refuses every request, the error names the server and the status, and has a hint. This holds for
// discovery, for which client-go says only "unknown", and for the other requests to the whole server. A login page appears as its title.
func TestRefused(t *testing.T) {
	const (
		status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the user b\u001b[2J is blocked","reason":"Forbidden","code":%d}`
		page   = "<!DOCTYPE html><html><title>Sign in</title>you sent Bearer s3cret-token"
	)
	for name, tc := range map[string]struct {
		code            int
		kind, body      string
		version, groups string // parts of the errors
		hint            string
	}{
		"forbidden, as JSON": {403, "application/json", fmt.Sprintf(status, 403), "is blocked", "it answers 403 Forbidden", "system:discovery"},
		"forbidden, in text": {403, "text/plain", "blocked s3cret-token", "blocked ***", "blocked ***", "system:discovery"},
		"forbidden, a page":  {403, "text/html", page, `the web page "Sign in"`, `the web page "Sign in"`, "system:discovery"},
		"unauthorized":       {401, "application/json", fmt.Sprintf(status, 401), "is blocked", "provide credentials", "get a new kubeconfig"},
		"gateway":            {502, "text/html", page, `the web page \"Sign in\"`, `the web page \"Sign in\"`, "/readyz?verbose"},
		"unavailable":        {503, "application/json", "{}", "currently unable", "currently unable", "/readyz?verbose"},
		"a page":             {200, "text/html", page, `with the web page "Sign in"`, `with the web page "Sign in"`, "wants a login"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			client, err := kube.NewForConfig(&rest.Config{
				Host: server.URL, BearerToken: "s3cret-token", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
			}, kube.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, version := client.ServerVersion(t.Context())
			_, list := client.Exists(t.Context(), corev1.SchemeGroupVersion.WithKind("Pod"), kube.Key{Namespace: "a", Name: "b"})
			for what, said := range map[string]struct {
				err  error
				want string
			}{"version": {version, tc.version}, "groups": {list, tc.groups}} {
				if said.err == nil || !strings.Contains(said.err.Error(), said.want) || !strings.Contains(said.err.Error(), server.URL) ||
					!strings.Contains(diag.Hint(said.err), tc.hint) {
					t.Errorf("%s: %v (%s)", what, said.err, diag.Hint(said.err))
				}
				for _, never := range []string{"unknown", "server groups", "s3cret-token", "<title>"} {
					if strings.Contains(said.err.Error(), never) {
						t.Errorf("%s: %q is in %v", what, never, said.err)
					}
				}
				if tc.code == 403 && !apierrors.IsForbidden(said.err) {
					t.Errorf("%s: %v has lost its type", what, said.err)
				}
			}
		})
	}
}

// What is no answer of an API server is never taken for that of an API server without objects: the error names the server and what to do.
func TestNoAPIServer(t *testing.T) {
	for _, body := range []string{
		"[]", `"a"`, "3", "true", "", "{", `{"versions": 3}`, `{"groups": [3]}`, "null", "{}", `{"kind": "PodList", "items": []}`,
	} {
		t.Run(body, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			}))
			defer server.Close()
			client, err := kube.NewForConfig(&rest.Config{
				Host: server.URL, BearerToken: "s3cret-token", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
			}, kube.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"Namespace", "ConfigMap", "Secret", "Event"} {
				_, err = client.Exists(t.Context(), corev1.SchemeGroupVersion.WithKind(kind), kube.Key{Namespace: "a", Name: "b"})
				if err == nil || !strings.Contains(err.Error(), server.URL) ||
					!strings.Contains(err.Error(), "this is not the answer of an API server") ||
					!strings.Contains(diag.Hint(err), "check `server:` in the kubeconfig") || meta.IsNoMatchError(err) {
					t.Errorf("%s: %v (%s)", kind, err, diag.Hint(err))
				}
			}
		})
	}
}

// A server that knows no path is no API server without objects either.
func TestNotFoundIsNoAPIServer(t *testing.T) {
	for kind, body := range map[string]string{
		"application/json": `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`,
		"text/plain":       "404 page not found",
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, body)
		}))
		defer server.Close()
		client, err := kube.NewForConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, kube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, gvk := range []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("ConfigMap"), clusterv1.GroupVersion.WithKind("Cluster"),
		} {
			_, err := client.Exists(t.Context(), gvk, kube.Key{Namespace: "a", Name: "b"})
			if err == nil || !strings.Contains(err.Error(), server.URL) || diag.Hint(err) == "" {
				t.Errorf("%s, %s: %v (%s)", kind, gvk.Kind, err, diag.Hint(err))
			}
		}
	}
}

// A server that asks for a pause of a day does not get it.
func TestLongPause(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Del("Retry-After")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"gitVersion":"v1.36.0"}`)
	}))
	defer server.Close()
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if version, err := client.ServerVersion(t.Context()); err != nil || version != "v1.36.0" {
		t.Errorf("%s, %v", version, err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
