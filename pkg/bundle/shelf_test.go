package bundle_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fleetctl/fleetctl/pkg/bundle"
)

// A run that is killed while it deletes a file may have deleted the manifest, and left the tag, where a registry keeps it. The file is
// there until the next run deletes the tag.
func TestDeleteHalfDeleted(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	shelf, err := bundle.NewShelf(strings.TrimPrefix(server.URL, "http://") + "/fleet")
	if err != nil {
		t.Fatal(err)
	}
	const file = "mgmt.20260101t000000z-abcdef"
	if err := shelf.Write(t.Context(), file, []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	request := func(method, reference string) (status int, digest string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/v2/fleet/manifests/"+reference, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, answer.Header.Get("Docker-Content-Digest")
	}
	_, digest := request(http.MethodHead, file)
	if status, _ := request(http.MethodDelete, digest); status != http.StatusAccepted {
		t.Fatalf("delete the manifest %q: %d", digest, status)
	}
	if names, err := shelf.Names(t.Context()); err != nil || len(names) != 1 {
		t.Fatalf("the registry keeps the tag: %q, %v", names, err)
	}
	if err := shelf.Delete(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if names, err := shelf.Names(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("left: %q, %v", names, err)
	}
}
