package bundle

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/fleetctl/fleetctl/pkg/progress"
)

// The same programs give the same image, whatever the names and times of their files. A program with several names is in the image once.
func TestPrograms(t *testing.T) {
	digests := map[string]bool{}
	var out string
	for range 2 {
		dir := t.TempDir()
		for name, content := range map[string]string{"one": "the etcd", "two": "several in one"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("two", filepath.Join(dir, "three")); err != nil {
			t.Fatal(err)
		}
		out = t.TempDir()
		w, err := Create(out)
		if err != nil {
			t.Fatal(err)
		}
		programs := &Programs{Refs: []string{"registry.example.com/a:1", "registry.example.com/b:2"}, Files: map[string]string{
			"/usr/local/bin/etcd": filepath.Join(dir, "one"), "/usr/local/bin/server": filepath.Join(dir, "two"),
			"/usr/local/bin/manager": filepath.Join(dir, "three"),
		}}
		if err := errors.Join(Fill(t.Context(), w, Sources{Programs: programs, Architecture: "arm64"}, progress.Discard), w.Close()); err != nil {
			t.Fatal(err)
		}
		b, err := Open(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Images() {
			digests[e.Digest] = true
			if e.Platform != "linux/arm64" {
				t.Errorf("%s is for %s", e.Name, e.Platform)
			}
		}
		if len(b.Images()) != 2 {
			t.Errorf("images are %v", b.Images())
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(digests) != 1 {
		t.Errorf("got %d images: %v", len(digests), digests)
	}
	want := []string{
		"usr/ ", "usr/local/ ", "usr/local/bin/ ", "usr/local/bin/etcd the etcd", "usr/local/bin/manager several in one",
		"usr/local/bin/server -> usr/local/bin/manager",
	}
	if diff := cmp.Diff(want, layerOf(t, out)); diff != "" {
		t.Error(diff)
	}
}

// layerOf returns the entries of the only layer of a bundle's images.
func layerOf(t *testing.T, dir string) (entries []string) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil || h.Mode != 0o755 && h.Typeflag != tar.TypeLink {
			t.Fatalf("%+v, %v", h, err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if text := h.Name + " " + string(content); h.Typeflag == tar.TypeLink {
			entries = append(entries, text+"-> "+h.Linkname)
		} else {
			entries = append(entries, text)
		}
	}
}
