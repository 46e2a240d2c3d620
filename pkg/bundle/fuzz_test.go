package bundle

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// fuzzLimits keep one run small.
var fuzzLimits = WithLimits(Limits{Entries: 50, Bytes: 1 << 20, Ratio: 100})

// FuzzOpen gives the archive reader any bytes, as they are and as the content of a compressed stream. It must not panic,
// must write nothing outside of its folder, and what it opens must be whole.
func FuzzOpen(f *testing.F) {
	index := `{"schemaVersion":2,"manifests":[]}`
	file := filepath.Join(f.TempDir(), "seed")
	for _, entries := range [][]tarEntry{
		{{tar.Header{Name: layoutFile}, layoutContent}, {tar.Header{Name: indexFile}, index}},
		{{tar.Header{Name: "../evil"}, "evil"}},
		{{header: tar.Header{Typeflag: tar.TypeSymlink, Name: "blobs", Linkname: "/tmp"}}},
	} {
		makeArchive(f, file, entries...)
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte{})
	f.Add(zstdMagic)
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, archive := range [][]byte{content, compress(t, content)} {
			dir := t.TempDir()
			archiveFile := filepath.Join(dir, "b.tar.zst")
			cache := filepath.Join(dir, "cache")
			writeFile(t, archiveFile, archive)
			b, err := Open(t.Context(), archiveFile, WithCache(cache), fuzzLimits)
			if err == nil {
				must(t, b.Verify(t.Context()))
				must(t, b.Close())
			}
			for _, path := range listFiles(t, dir) {
				rel, err := filepath.Rel(cache, path)
				if path != archiveFile && (err != nil || !filepath.IsLocal(rel)) {
					t.Errorf("%s was written", path)
				}
			}
		}
	})
}

// FuzzIndex gives the reader any index.json and any manifest. What it takes must have sensible names and be whole.
func FuzzIndex(f *testing.F) {
	manifest := []byte(`{"schemaVersion":2,"config":{"mediaType":"` + string(emptyMediaType) + `","size":2,"digest":"` +
		describe([]byte(emptyConfig)).Digest.String() + `"},"layers":[{"size":2,"digest":"` +
		describe([]byte(emptyConfig)).Digest.String() + `","annotations":{"` + annotationTitle + `":"a/b"}}]}`)
	entry := `"mediaType":"application/vnd.oci.image.manifest.v1+json","size":$size,"digest":"$digest"`
	f.Add([]byte(`{"manifests":[{`+entry+`,"artifactType":"`+FilesArtifactType+`"}]}`), manifest)
	f.Add([]byte(`{"manifests":[{`+entry+`,"annotations":{"`+annotationImageName+`":"`+refApp+`"}}]}`), manifest)
	f.Add([]byte(`{"manifests":null}`), []byte(`{"layers":[{"digest":"","size":-1}]}`))
	f.Fuzz(func(t *testing.T, index, manifest []byte) {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, blobsDir), 0o755))
		writeFile(t, filepath.Join(dir, layoutFile), []byte(layoutContent))
		for _, blob := range [][]byte{manifest, []byte(emptyConfig)} {
			writeFile(t, filepath.Join(dir, blobPath(describe(blob).Digest)), blob)
		}
		// The manifest's digest and size can hardly be guessed: put them in the place of these words.
		d := describe(manifest)
		index = bytes.ReplaceAll(index, []byte("$digest"), []byte(d.Digest.String()))
		index = bytes.ReplaceAll(index, []byte("$size"), []byte(strconv.FormatInt(d.Size, 10)))
		writeFile(t, filepath.Join(dir, indexFile), index)
		b, err := Open(t.Context(), dir)
		if err != nil {
			return
		}
		defer b.Close()
		must(t, b.Verify(t.Context()))
		for _, e := range b.Images() {
			if full, err := FullReference(e.Name); err != nil || full != e.Name {
				t.Errorf("image %q, %v", e.Name, err)
			}
		}
		out := t.TempDir()
		for _, e := range b.Files() {
			must(t, checkFilePath(e.Name))
		}
		// Two files can exclude each other (a and a/b): an error is fine, a file elsewhere is not.
		_ = b.WriteFiles(t.Context(), filepath.Join(out, "in"), "")
		for _, path := range listFiles(t, out) {
			if rel, err := filepath.Rel(filepath.Join(out, "in"), path); err != nil || !filepath.IsLocal(rel) {
				t.Errorf("%s was written", path)
			}
		}
	})
}
