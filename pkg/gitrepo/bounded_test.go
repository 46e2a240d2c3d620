package gitrepo_test

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// A server never ends its list of references, its error, or its report about a push. The client stops reading.
func TestAnswersWithoutEnd(t *testing.T) {
	const most = 200 << 20 // more than any bound
	line := []byte("003f" + strings.Repeat("a", 40) + " refs/heads/" + "bbbbbb" + "\n")
	refs := bytes.Repeat(line, 1<<14)
	page := bytes.Repeat([]byte("<p>Sign in</p>\n"), 1<<14)
	for name, tc := range map[string]struct {
		status int
		part   []byte
		atMost int64
		want   string
	}{
		"references":            {http.StatusOK, refs, 150 << 20, "too large"},
		"a page to sign in":     {http.StatusUnauthorized, page, 32 << 20, "Sign in"},
		"a page that refuses":   {http.StatusForbidden, page, 32 << 20, "Sign in"},
		"a page about nothing":  {http.StatusNotFound, page, 32 << 20, "Sign in"},
		"a page that redirects": {http.StatusMultipleChoices, page, 32 << 20, ""},
		"a page of an error":    {http.StatusInternalServerError, page, 32 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/x-"+r.URL.Query().Get("service")+"-advertisement")
				w.WriteHeader(tc.status)
				if tc.status == http.StatusOK {
					service := "# service=" + r.URL.Query().Get("service") + "\n"
					_, _ = w.Write([]byte(pktLine(service) + "0000" + pktLine(strings.Repeat("a", 40)+" HEAD\x00ofs-delta\n")))
				}
				for sent.Load() < most {
					n, err := w.Write(tc.part)
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			}))
			defer server.Close()
			auth := gitrepo.Auth{Token: "s3cret", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
			for _, look := range []func() error{
				func() error { _, err := gitrepo.Probe(t.Context(), server.URL+"/a/b", auth, "main"); return err },
				func() error {
					_, err := gitrepo.Probe(t.Context(), server.URL+"/a/b", gitrepo.Auth{CA: auth.CA}, "main")
					return err
				},
				func() error { return gitrepo.CheckPush(t.Context(), server.URL+"/a/b", auth, "main") },
			} {
				sent.Store(0)
				err := look()
				if err == nil || len(err.Error()) > 4000 || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %.200v", err)
				}
				if n := sent.Load(); n > tc.atMost {
					t.Errorf("%d MiB were taken", n>>20)
				}
			}
		})
	}
}

func pktLine(text string) string {
	const digits = "0123456789abcdef"
	n := len(text) + 4
	return string([]byte{digits[n>>12&15], digits[n>>8&15], digits[n>>4&15], digits[n&15]}) + text
}
