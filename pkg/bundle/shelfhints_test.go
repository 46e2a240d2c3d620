package bundle_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// An error about a place of snapshots says what to do next, also where the registry lists a file and then gives only a part of it.
func TestShelfSaysWhatToDo(t *testing.T) {
	cut := func(w http.ResponseWriter) { // the connection ends in the middle of the body
		w.Header().Set("Content-Length", "500")
		_, _ = w.Write([]byte("{"))
	}
	refuse := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": "BLOB_UNKNOWN", "message": "lost"}}})
	}
	other := func(w http.ResponseWriter) { _, _ = w.Write([]byte("something else")) }
	for name, test := range map[string]struct {
		of     string // part of the path whose answer is not the registry's
		answer func(http.ResponseWriter)
		hint   string
	}{
		"the list is cut off":         {"/tags/", cut, "run the same command again"},
		"the snapshot is cut off":     {"/blobs/", cut, "run the same command again"},
		"the snapshot is lost":        {"/blobs/", refuse, "the registry has lost a part of it"},
		"the snapshot is another one": {"/blobs/", other, "run the same command again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner, strange := registry.New(), false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strange && strings.Contains(r.URL.Path, test.of) {
					test.answer(w)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			defer server.Close()
			shelf, err := bundle.NewShelf(strings.TrimPrefix(server.URL, "http://") + "/acme/snapshots")
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if err := shelf.Write(ctx, "mgmt.one", []byte("content")); err != nil {
				t.Fatal(err)
			}
			strange = true
			read := func(ctx context.Context) error {
				_, err := shelf.Read(ctx, "mgmt.one", 1<<20)
				return err
			}
			if test.of == "/tags/" {
				read = func(ctx context.Context) error {
					names, err := shelf.Names(ctx)
					if len(names) > 0 {
						t.Errorf("names: %v", names)
					}
					return err
				}
			}
			if err := read(ctx); err == nil || !strings.Contains(diag.Hint(err), test.hint) {
				t.Errorf("%v (%s); want the hint %q", err, diag.Hint(err), test.hint)
			}
		})
	}
}
