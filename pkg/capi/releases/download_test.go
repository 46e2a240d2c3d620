package releases

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// clusterctl downloads like this and keeps the whole content. So a download without an end must be given up.
func TestDownloadsAreBounded(t *testing.T) {
	if _, err := NewSource(SourceOptions{}); err != nil {
		t.Fatal(err)
	}
	part := bytes.Repeat([]byte("a: b\n"), 1<<20/5)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 2 * maxRelease / len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	resp, err := http.Get(server.URL) // as clusterctl does
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, contact.ErrTooLarge) || n != maxRelease {
		t.Errorf("%d MiB were read: %v", n>>20, err)
	}
}
