package flux

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// TestHostileRelease: spec.flux.url may be a stranger's. What is released there is given to kustomize, which would follow folders, and
// fetch or run what they name.
func TestHostileRelease(t *testing.T) {
	var asked atomic.Int32
	remote := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer remote.Close()
	ran := filepath.Join(t.TempDir(), "ran")
	const controller = "source-controller.yaml"
	for name, tt := range map[string]struct {
		without string
		entries []tar.Header
		content map[string]string
		want    string
	}{
		"a folder in the place of a file": {
			without: controller, entries: []tar.Header{{Name: controller + "/kustomization.yaml"}},
			content: map[string]string{controller + "/kustomization.yaml": "resources:\n- " + remote.URL + "/x.yaml\n"}, want: controller,
		},
		"a folder that runs a command": {
			without: controller, entries: []tar.Header{{Name: controller + "/kustomization.yaml"}},
			content: map[string]string{
				controller + "/kustomization.yaml": "resources:\n- file:///nowhere//x?ref=--upload-pack=touch${IFS}" + ran + "\n",
			}, want: controller,
		},
		"a kustomization beside them": {
			entries: []tar.Header{{Name: "kustomization.yaml"}, {Name: "Kustomization"}},
			content: map[string]string{
				"kustomization.yaml": "resources: [" + remote.URL + "/x.yaml]\n",
				"Kustomization":      "resources: [" + remote.URL + "/x.yaml]\n",
			},
		},
		"a link": {
			without: controller, entries: []tar.Header{{Name: controller, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, want: controller,
		},
		"aliases of aliases": {
			without: controller, entries: []tar.Header{{Name: controller}},
			content: map[string]string{controller: "apiVersion: v1\nkind: A\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: " +
				"&c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
				"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g " +
				"[*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"},
			want: controller + ": file is too large or too deep once its aliases are expanded",
		},
		"deep": {
			without: controller, entries: []tar.Header{{Name: controller}},
			content: map[string]string{controller: "apiVersion: v1\nkind: A\nmetadata: {name: a}\ndata: " + strings.Repeat("{a: ", 5000) + "b" +
				strings.Repeat("}", 5000) + "\n"},
			want: controller + ": line 4: it is nested too deep",
		},
		"large": {
			without: controller, entries: []tar.Header{{Name: controller}},
			content: map[string]string{controller: "a: [" + strings.Repeat("1,", maxManifest/2) + "]"},
			want:    controller + ": too large: it has more than 4 MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive := hostileArchive(t, tt.without, tt.entries, tt.content)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
			defer server.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := GenerateComponents(t.Context(), ComponentsOptions{Version: "v2.9.5", ReleasesURL: server.URL})
			runtime.ReadMemStats(&after)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 512 {
				t.Errorf("it took %d MiB", used)
			}
			if n := asked.Load(); n > 0 {
				t.Errorf("a server that it names was asked %d times", n)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("a command that it names was run")
			}
		})
	}
}

// hostileArchive is a release with one file left out and others added.
func hostileArchive(t *testing.T, without string, entries []tar.Header, content map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	put := func(h tar.Header, content []byte) {
		h.Mode, h.Size = 0o644, int64(len(content))
		_, err := 0, tw.WriteHeader(&h)
		if err == nil {
			_, err = tw.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range dirNames(t, "testdata/base") {
		if name == without {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("testdata/base", name))
		if err != nil {
			t.Fatal(err)
		}
		put(tar.Header{Name: name}, raw)
	}
	for _, h := range entries {
		put(h, []byte(content[h.Name]))
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
