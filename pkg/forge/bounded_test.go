package forge

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// An answer without an end, good or bad, is given up long before it fills the memory.
func TestAnswersWithoutEnd(t *testing.T) {
	part := bytes.Repeat([]byte(" "), 1<<20)
	for _, kind := range v1alpha1.ForgeTypes() {
		for _, status := range []int{http.StatusOK, http.StatusForbidden} {
			t.Run(string(kind)+" "+http.StatusText(status), func(t *testing.T) {
				var sent atomic.Int64
				server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					for range 4 * maxAnswer >> 20 {
						n, err := w.Write(part)
						if sent.Add(int64(n)); err != nil {
							return
						}
					}
				}))
				remote, err := url.Parse(server.URL + "/platform/fleet.git")
				if err != nil {
					t.Fatal(err)
				}
				o := Options{
					Type: kind, Remote: remote, Token: "s3cret",
					CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
				}
				if _, err := Open(t.Context(), o, Request{Branch: "fleetctl/x", Base: "main", Title: "Do x"}); err == nil {
					t.Error("it was taken")
				}
				server.Close() // and all that is being sent has ended
				if n := sent.Load(); n >= 4*maxAnswer {
					t.Errorf("%d MiB were read", n>>20)
				}
			})
		}
	}
}
