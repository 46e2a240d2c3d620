package bundle_test

import (
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Only a registry knows that it has no repository. What answers 404 in its place, such as a proxy, does not: a bootstrap that found no
// snapshots there would make every cluster a second time.
func TestNotFoundByNoRegistry(t *testing.T) {
	const file = "mgmt.20260101t000000z-abcdef"
	stock := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	for name, test := range map[string]struct {
		absent bool
		answer func(w http.ResponseWriter, r *http.Request)
	}{
		"a registry without the repository": {absent: true, answer: stock.ServeHTTP},
		"a website":                         {answer: http.NotFound},
		"a website that answers in JSON": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"no such page"}`)
		}},
		"a proxy before a registry": {answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				stock.ServeHTTP(w, r)
				return
			}
			http.NotFound(w, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(test.answer))
			t.Cleanup(server.Close)
			shelf, err := bundle.NewShelf(strings.TrimPrefix(server.URL, "http://") + "/fleet")
			if err != nil {
				t.Fatal(err)
			}
			names, err := shelf.Names(t.Context())
			if test.absent != (err == nil) || len(names) > 0 {
				t.Errorf("the names are %q, %v", names, err)
			}
			if !test.absent && !strings.Contains(diag.Hint(err), "check the address") {
				t.Errorf("the hint of %v is %q", err, diag.Hint(err))
			}
			if _, err := shelf.Read(t.Context(), file, 1<<20); err == nil || errors.Is(err, fs.ErrNotExist) != test.absent {
				t.Errorf("read: %v", err)
			}
		})
	}
}

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
