package kube_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// The token of a kubeconfig does not follow a redirect to another server.
func TestTokenStays(t *testing.T) {
	var strangers atomic.Int32
	stranger := http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { strangers.Add(1) })
	other, open := httptest.NewTLSServer(stranger), httptest.NewServer(stranger)
	defer other.Close()
	defer open.Close()
	var to string
	server := httptest.NewTLSServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }))
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: "s3cret", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	client, err := kube.NewForConfig(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, to = range []string{other.URL, open.URL, strings.Replace(server.URL, "https", "http", 1)} {
		refused := (*sameorigin.Error)(nil)
		if _, err := client.ServerVersion(t.Context()); !errors.As(err, &refused) {
			t.Errorf("to %s: %v", to, err)
		}
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("%d requests left the API server", n)
	}
	// The clients that clusterctl makes are guarded too.
	raw, err := rest.HTTPClientFor(client.Config())
	if err != nil {
		t.Fatal(err)
	}
	to = other.URL
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := raw.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("a client of the same configuration follows")
	}
}
