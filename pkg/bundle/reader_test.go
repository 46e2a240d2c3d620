package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestOpenRefuses(t *testing.T) {
	write := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
	}
	entry := func(media, ref, digest string) string {
		return `{"mediaType":"` + media + `","size":2,"digest":"` + digest + `","annotations":{"io.containerd.image.name":"` + ref + `"}}`
	}
	const oci = "application/vnd.oci.image.manifest.v1+json"
	digest := "sha256:" + strings.Repeat("a", 64)
	for name, tt := range map[string]struct {
		change func(*testing.T, string)
		want   string
	}{
		"no layout":    {func(t *testing.T, d string) { must(t, os.Remove(filepath.Join(d, layoutFile))) }, "not a bundle"},
		"no index":     {func(t *testing.T, d string) { must(t, os.Remove(filepath.Join(d, indexFile))) }, "interrupted"},
		"version":      {write(layoutFile, `{"imageLayoutVersion":"2.0.0"}`), `"2.0.0" is not supported`},
		"layout":       {write(layoutFile, `{`), layoutFile},
		"index":        {write(indexFile, `{"manifests":[`), indexFile},
		"digest":       {write(indexFile, `{"manifests":[`+entry(oci, refApp, "sha256:../../x")+`]}`), indexFile},
		"no digest":    {write(indexFile, `{"manifests":[{"mediaType":"`+oci+`"}]}`), "entry 0"},
		"media type":   {write(indexFile, `{"manifests":[`+entry("text/plain", refApp, digest)+`]}`), "text/plain"},
		"reference":    {write(indexFile, `{"manifests":[`+entry(oci, "app", digest)+`]}`), "docker.io/library/app:latest"},
		"no reference": {write(indexFile, `{"manifests":[`+entry(oci, "", digest)+`]}`), "not an image reference"},
		"twice": {
			write(indexFile, `{"manifests":[`+entry(oci, refApp, digest)+`,`+entry(oci, refApp, digest)+`]}`),
			"is listed twice",
		},
		"no blob":  {write(indexFile, `{"manifests":[`+entry(oci, refApp, digest)+`]}`), refApp + ": missing"},
		"too long": {write(indexFile, strings.Repeat(" ", maxIndex+1)), "is larger than"},
		"huge manifest": {
			write(indexFile, `{"manifests":[`+strings.Replace(entry(oci, refApp, digest), `"size":2`, `"size":99999999`, 1)+`]}`),
			"not valid for a manifest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newBundle(t)
			tt.change(t, dir)
			_, err := Open(t.Context(), dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

// descriptorsOf returns the descriptors of all blobs by a name for their purpose.
func descriptorsOf(t *testing.T, dir string) map[string]v1.Descriptor {
	t.Helper()
	b := openBundle(t, dir)
	app := b.images[refApp]
	ds := map[string]v1.Descriptor{
		"manifest": app.descriptor, "config": app.manifest.Config, "layer": app.manifest.Layers[1],
		"shared": app.manifest.Layers[0], "file": b.files[pathRB],
	}
	return ds
}

// Every kind of damage to every blob is found, and the error names the blob.
func TestDamageIsNamed(t *testing.T) {
	damages := map[string]func(*testing.T, string, v1.Hash){
		"flipped": flip,
		"missing": func(t *testing.T, dir string, h v1.Hash) { must(t, os.Remove(filepath.Join(dir, blobPath(h)))) },
		"truncated": func(t *testing.T, dir string, h v1.Hash) {
			must(t, os.Truncate(filepath.Join(dir, blobPath(h)), 5))
		},
		"longer": func(t *testing.T, dir string, h v1.Hash) {
			file := filepath.Join(dir, blobPath(h))
			content, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, append(content, 0), 0o600))
		},
		"link out": func(t *testing.T, dir string, h v1.Hash) {
			file := filepath.Join(dir, blobPath(h))
			outside := filepath.Join(t.TempDir(), "blob")
			must(t, os.Rename(file, outside))
			must(t, os.Symlink(outside, file))
		},
	}
	of := map[string][]string{
		"manifest": {refApp}, "config": {refApp}, "layer": {refApp}, "shared": {refApp, refTool}, "file": {pathRB},
	}
	for damage, do := range damages {
		for part, names := range of {
			t.Run(damage+" "+part, func(t *testing.T) {
				dir := newBundle(t)
				d := descriptorsOf(t, dir)[part]
				do(t, dir, d.Digest)
				// Open finds damage that shows without reading all content. Verify finds the rest.
				b, err := Open(t.Context(), dir)
				if err == nil {
					defer b.Close()
					err = b.Verify(t.Context())
				}
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) || corrupt.Blob != d.Digest.String() {
					t.Fatalf("error %v, want blob %s", err, d.Digest)
				}
				for _, name := range names {
					if !strings.Contains(err.Error(), name) {
						t.Errorf("error %v does not name %s", err, name)
					}
				}
				if diag.Hint(err) == "" {
					t.Error("no hint")
				}
			})
		}
	}
}

func TestVerifyTellsEverything(t *testing.T) {
	dir := newBundle(t)
	ds := descriptorsOf(t, dir)
	for _, d := range ds {
		flip(t, dir, d.Digest)
	}
	_, err := Open(t.Context(), dir)
	if err == nil {
		t.Fatal("a damaged bundle was opened")
	}
	// Without a readable manifest, the image's config and its own layer are unknown.
	for _, part := range []string{"manifest", "shared", "file"} {
		if n := strings.Count(err.Error(), "blob "+ds[part].Digest.String()); n != 1 {
			t.Errorf("%s is named %d times in: %v", part, n, err)
		}
	}
}

func TestWrongFilesAreNotRead(t *testing.T) {
	dir := newBundle(t)
	flip(t, dir, descriptorsOf(t, dir)["file"].Digest)
	b := openBundle(t, dir)
	var corrupt *CorruptError
	if content, err := b.ReadFile(pathRB); !errors.As(err, &corrupt) || len(content) != 0 {
		t.Errorf("ReadFile = %q, %v", content, err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := b.WriteFiles(t.Context(), out, ""); !errors.As(err, &corrupt) {
		t.Errorf("WriteFiles: %v", err)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	must(t, b.WriteFiles(t.Context(), out, "providers"))
}

func TestWriteFiles(t *testing.T) {
	b := openBundle(t, newBundle(t))
	for prefix, want := range map[string]int{
		"": 2, "flux": 1, "flux/": 1, "flux/v2.9.5": 1, pathRB: 1, "providers/infrastructure-docker/v1.14.0": 1,
		"flu": 0, "charts": 0, "..": 0,
	} {
		out := filepath.Join(t.TempDir(), "a", "b")
		err := b.WriteFiles(t.Context(), out, prefix)
		if errors.Is(err, ErrNotFound) != (want == 0) || (want > 0 && err != nil) {
			t.Errorf("prefix %q: %v", prefix, err)
		}
		if want > 0 {
			if files := listFiles(t, out); len(files) != want {
				t.Errorf("prefix %q: %q", prefix, files)
			}
		}
	}
	out := t.TempDir()
	for range 2 { // the second run finds the files of the first
		must(t, b.WriteFiles(t.Context(), out, "flux"))
	}
	if content, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(pathRB))); err != nil || string(content) != "kind: ClusterRole\n" {
		t.Errorf("content %q, %v", content, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.WriteFiles(ctx, t.TempDir(), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestWriteFilesStaysInside(t *testing.T) {
	b := openBundle(t, newBundle(t))
	outside, out := t.TempDir(), t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(out, "flux")))
	if err := b.WriteFiles(t.Context(), out, "flux"); err == nil {
		t.Error("a link was followed")
	}
	if files := listFiles(t, outside); len(files) != 0 {
		t.Errorf("written outside: %q", files)
	}
}
