package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// fuzzLimits keep one run small.
var fuzzLimits = withLimits(Limits{Entries: 50, Bytes: 1 << 20, Ratio: 100})

// FuzzOpen gives the archive reader any bytes, as they are and as the content of a compressed stream. The reader must not panic, and must
// write nothing outside of its folder. Every bundle that it opens must be complete.
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

// FuzzIndex gives the reader any index.json and any manifest. Every accepted bundle must have valid names and be complete.
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
		// The fuzzer cannot guess the manifest's digest and size: replace these words by them.
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
		// Two files can exclude each other (a and a/b). Then an error is fine, but a file elsewhere is not.
		_ = b.WriteFiles(t.Context(), filepath.Join(out, "in"), "")
		for _, path := range listFiles(t, out) {
			if rel, err := filepath.Rel(filepath.Join(out, "in"), path); err != nil || !filepath.IsLocal(rel) {
				t.Errorf("%s was written", path)
			}
		}
	})
}

// FuzzChart gives the reader of Helm charts any archive, as it is and as the content of a compressed one, and any Chart.yaml. Every
// accepted chart has a path directly below the folder of charts.
func FuzzChart(f *testing.F) {
	f.Add([]byte("name: aws-eks\nversion: 1.2.3-rc.1+abc\n"))
	f.Add([]byte("name: ../../evil\nversion: v1\n"))
	f.Add([]byte("name: a\nversion: 1/../../evil\n"))
	f.Add([]byte("name: [a]\nversion: {}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, archive := range [][]byte{content, gzipped(t, content), gzipped(t, chartTar(t, content))} {
			file, err := chartPath(archive)
			if err != nil {
				continue
			}
			must(t, checkFilePath(file))
			if path.Dir(file) != chartsDir || path.Ext(file) != ".tgz" {
				t.Errorf("the chart goes to %q", file)
			}
		}
	})
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(content)
	must(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// chartTar returns the archive of a chart that has only a Chart.yaml.
func chartTar(t *testing.T, chartYAML []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Name: "chart/Chart.yaml", Mode: 0o644, Size: int64(len(chartYAML))}))
	_, err := w.Write(chartYAML)
	must(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

// FuzzImagesIn gives the search for images any manifest. ImagesIn must find the same images as another reader of the manifest, and each
// must be a full reference.
func FuzzImagesIn(f *testing.F) {
	f.Add([]byte("spec:\n  containers:\n  - {name: a, image: busybox}\n  - image: quay.io/a/b:v1@sha256:" + strings.Repeat("a", 64) +
		"\n---\n---\n# nothing\n"))
	f.Add([]byte("x: &c [{image: &i a:1}]\nspec: {containers: *c, initContainers: [{image: *i}, {image: b:1}]}\n"))
	f.Add([]byte("base: &b {image: a:1}\nspec: {ephemeralContainers: [{<<: *b, name: x}, {<<: [*b, {image: c}], image: d}]}\n"))
	f.Add([]byte("spec: {containers: [{image: ${IMAGE}}, {image: [a]}, {image: 1}, [{image: x}], {containers: [{image: y}]}]}\n"))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		images, err := ImagesIn(manifest)
		if err != nil {
			return
		}
		for _, image := range images {
			if full, err := FullReference(image); err != nil || full != image {
				t.Errorf("image %q, %v", image, err)
			}
		}
		want := []string{}
		decoder := yaml.NewDecoder(bytes.NewReader(manifest))
		for {
			var document any
			err := decoder.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return // for example, a mapping with the same key twice
			}
			want = imagesOf(t, document, want)
		}
		slices.Sort(want)
		slices.Sort(images)
		if want = slices.Compact(want); !slices.Equal(images, want) {
			t.Errorf("found %q; want %q", images, want)
		}
	})
}

// imagesOf adds the images in a value to those found.
func imagesOf(t *testing.T, value any, found []string) []string {
	t.Helper()
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			found = imagesOf(t, item, found)
		}
	case map[any]any:
		for _, field := range value {
			found = imagesOf(t, field, found)
		}
	case map[string]any:
		for name, field := range value {
			found = imagesOf(t, field, found)
			containers, _ := field.([]any)
			if !podContainers[name] {
				continue
			}
			for _, item := range containers {
				container, _ := item.(map[string]any)
				if image, ok := container["image"].(string); ok && image != "" {
					full, err := FullReference(image)
					must(t, err)
					found = append(found, full)
				}
			}
		}
	}
	return found
}
