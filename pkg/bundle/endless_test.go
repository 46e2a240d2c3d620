package bundle_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle"
)

// Both the text of a repository's index and the number of its values are bounded. 12 MiB of empty entries would take more than a gigabyte.
func TestIndexOfManyValues(t *testing.T) {
	for name, text := range map[string]string{
		"entries":  "entries: {a: [" + strings.Repeat("{},", 4<<20) + "]}\n",
		"nested":   strings.Repeat(strings.Repeat("- ", 8000)+"x\n", 500),
		"mappings": strings.Repeat("? ", 4<<20) + "x\n",
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
			defer server.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := bundle.FetchChart(t.Context(), nil, bundle.ChartRef{URL: server.URL, Name: "a", Version: "1.0.0"})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "more than 3000000 values") || !strings.Contains(err.Error(), server.URL) {
				t.Errorf("error %v", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 256 {
				t.Errorf("it took %d MiB", took)
			}
		})
	}
}

// Names gives up on a registry whose list of tags, or whose answer, has no end.
func TestEndlessTags(t *testing.T) {
	for name, tags := range map[string]func(w http.ResponseWriter, r *http.Request){
		"pages": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", fmt.Sprintf("<%s?last=x>; rel=next", r.URL.Path))
			_, _ = w.Write([]byte(`{"name":"fleet","tags":["mgmt.1"]}`))
		},
		"answer": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"name":"fleet","tags":["a"`))
			more := []byte(strings.Repeat(`,"a"`, 1<<16))
			for r.Context().Err() == nil {
				if _, err := w.Write(more); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/tags/list") {
					asked++
					tags(w, r)
				}
			}))
			defer server.Close()
			shelf, err := bundle.NewShelf(strings.TrimPrefix(server.URL, "http://") + "/fleet")
			if err != nil {
				t.Fatal(err)
			}
			names, err := shelf.Names(t.Context())
			if err == nil || !strings.Contains(err.Error(), shelf.String()) || len(names) > 0 {
				t.Errorf("%d names, error %v", len(names), err)
			}
			if asked > 100 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}
