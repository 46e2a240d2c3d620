package images

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// A registry says that an image's config is as long as it likes, and goes on with it: it is not asked for. Nor is an image of more layers
// than any has.
func TestPullIsBounded(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	layers := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":%q,"size":9},`,
		digest), maxLayers+1), ",")
	for name, tc := range map[string]struct {
		size   int64
		layers string
		want   string
	}{
		"an endless config": {1 << 40, "", "more than an image needs"},
		"many layers":       {2, layers, "more than 1000 layers"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			part := []byte(strings.Repeat(" ", 1<<20))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "/manifests/"):
					w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
					_, _ = fmt.Fprintf(
						w,
						`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[%s]}`,
						digest,
						tc.size,
						tc.layers,
					)
				case strings.Contains(r.URL.Path, "/blobs/"):
					for sent.Load() < 256<<20 {
						n, err := w.Write(part)
						if sent.Add(int64(n)); err != nil {
							return
						}
					}
				}
			}))
			defer server.Close()
			_, err := open(t).Get(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/team/app:v1-"+runtime.GOARCH, Pull{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
			if n := sent.Load(); n > 0 {
				t.Errorf("%d MiB were taken", n>>20)
			}
		})
	}
}
