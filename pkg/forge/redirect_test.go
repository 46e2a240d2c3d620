package forge

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// A forge that points elsewhere, with a redirect or a link to the next page, gets no token taken there: to no other port or name, and not
// to itself without TLS.
func TestTokenStays(t *testing.T) {
	var strangers atomic.Int32
	stranger := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		strangers.Add(1)
		_, _ = w.Write([]byte("[]"))
	})
	other, open := httptest.NewTLSServer(stranger), httptest.NewServer(stranger)
	defer other.Close()
	defer open.Close()
	for _, kind := range v1alpha1.ForgeTypes() {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(string(kind)+" "+http.StatusText(status), func(t *testing.T) {
				var to string
				var methods []string
				server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					methods = append(methods, r.Method)
					if r.Method == http.MethodGet && to == "create" {
						_, _ = w.Write([]byte("[]")) // there is no pull request yet
						return
					}
					w.Header().Set("Location", strings.Replace(to, "create", other.URL, 1))
					w.WriteHeader(status)
				}))
				defer server.Close()
				remote, err := url.Parse(server.URL + "/platform/fleet.git")
				if err != nil {
					t.Fatal(err)
				}
				o := Options{
					Type: kind, Remote: remote, Token: "s3cret",
					CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
				}
				for _, to = range []string{
					other.URL, open.URL, strings.Replace(other.URL, "127.0.0.1", "localhost", 1),
					strings.Replace(server.URL, "https", "http", 1), "create",
				} {
					_, err := Open(t.Context(), o, Request{Branch: "fleetctl/x", Base: "main", Title: "Do x"})
					refused := (*sameorigin.Error)(nil)
					if !errors.As(err, &refused) || strings.Contains(err.Error(), "s3cret") {
						t.Errorf("to %s: %v", to, err)
					}
				}
				if !slices.Contains(methods, http.MethodPost) {
					t.Error("nothing was created")
				}
			})
		}
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("%d requests left the forge", n)
	}
}
