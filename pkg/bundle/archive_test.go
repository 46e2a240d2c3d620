package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/fleetctl/fleetctl/pkg/host"
)

// extract writes the files of a tar to a new folder.
func extract(t *testing.T, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		file := filepath.Join(dir, filepath.FromSlash(h.Name))
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is in the archive twice", h.Name)
		}
		must(t, os.WriteFile(file, content, 0o600))
	}
}

// The archive is an OCI layout and a docker archive at the same time. Another library can read both.
func TestWriteArchive(t *testing.T) {
	b := openBundle(t, newBundle(t))
	archive := b.Archive()
	if diff := cmp.Diff([]string{refTool, refApp}, archive.Names()); diff != "" {
		t.Error(diff)
	}
	for _, ref := range archive.Names() {
		if got, want := archive.(host.Digests).Digest(ref), b.images[ref].descriptor.Digest.String(); got != want {
			t.Errorf("digest of %s: %q, want %q", ref, got, want)
		}
	}
	if got := archive.(host.Digests).Digest("other"); got != "" {
		t.Errorf("digest of an unknown image: %q", got)
	}
	var out bytes.Buffer
	must(t, archive.WriteArchive(t.Context(), &out))
	dir := extract(t, out.Bytes())

	index, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	must(t, validate.Index(index))
	m, err := index.IndexManifest()
	must(t, err)
	if len(m.Manifests) != 2 || m.Manifests[1].Annotations[annotationImageName] != refApp {
		t.Errorf("index %+v", m.Manifests)
	}
	// 2 manifests, 2 configs, 3 layers (one is shared), oci-layout, index.json, manifest.json.
	if files := listFiles(t, dir); len(files) != 10 {
		t.Errorf("%d files: %q", len(files), files)
	}
	for _, ref := range archive.Names() {
		tag, err := name.NewTag(ref)
		must(t, err)
		img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }, &tag)
		must(t, err)
		must(t, validate.Image(img))
		config, err := img.ConfigName()
		must(t, err)
		if want := b.images[ref].manifest.Config.Digest; config != want {
			t.Errorf("%s has config %s, want %s", ref, config, want)
		}
	}
}

func TestArchiveOfSome(t *testing.T) {
	b := openBundle(t, newBundle(t))
	some := b.Archive("tool", "docker.io/library/tool:latest")
	if diff := cmp.Diff([]string{refTool}, some.Names()); diff != "" {
		t.Error(diff)
	}
	var one, same bytes.Buffer
	must(t, some.WriteArchive(t.Context(), &one))
	must(t, b.Archive().WriteArchive(t.Context(), &same, "tool"))
	if !bytes.Equal(one.Bytes(), same.Bytes()) {
		t.Error("two ways to choose the same image give different archives")
	}
	// manifest, config, 2 layers; oci-layout, index.json, manifest.json
	if files := listFiles(t, extract(t, one.Bytes())); len(files) != 7 {
		t.Errorf("%d files: %q", len(files), files)
	}
	for _, err := range []error{
		some.WriteArchive(t.Context(), io.Discard, refApp),
		b.Archive("other").WriteArchive(t.Context(), io.Discard),
		b.Archive().WriteArchive(t.Context(), io.Discard, "other"),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("error %v", err)
		}
	}
}

func TestDigestReferences(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	img := newImage(t, "amd64", "x")
	digest, err := img.Digest()
	must(t, err)
	w, err := Create(dir)
	must(t, err)
	must(t, w.AddImage("quay.io/a/b@"+digest.String(), img))
	must(t, w.AddImage("quay.io/a/b:v1", img))
	must(t, w.AddImage("quay.io/a/b:v2", img))
	must(t, w.Close())
	b := openBundle(t, dir)
	var out bytes.Buffer
	must(t, b.Archive().WriteArchive(t.Context(), &out))
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return io.NopCloser(&out), nil })
	must(t, err)
	// docker refuses an archive with a digest among its names.
	if len(manifest) != 1 || !cmp.Equal(manifest[0].RepoTags, []string{"quay.io/a/b:v1", "quay.io/a/b:v2"}) {
		t.Errorf("manifest %+v", manifest)
	}
	if e, err := b.Image("quay.io/a/b:v9@" + digest.String()); err != nil || e.Digest != digest.String() {
		t.Errorf("Image = %+v, %v", e, err)
	}
}

// Wherever the damage is, the archive ends in the middle of an entry, so nobody can take it for complete.
func TestArchiveOfDamagedBundleIsCutShort(t *testing.T) {
	for _, part := range []string{"config", "layer", "shared"} {
		t.Run(part, func(t *testing.T) {
			dir := newBundle(t)
			flip(t, dir, descriptorsOf(t, dir)[part].Digest)
			var out bytes.Buffer
			err := openBundle(t, dir).Archive(refApp).WriteArchive(t.Context(), &out)
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.Of[len(corrupt.Of)-1] != "image "+refApp {
				t.Fatalf("error %v", err)
			}
			r := tar.NewReader(&out)
			for err = nil; err == nil; {
				if _, err = r.Next(); err == nil {
					_, err = io.Copy(io.Discard, r)
				}
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a reader sees %v", err)
			}
		})
	}
}

func TestWriteArchiveStops(t *testing.T) {
	b := openBundle(t, newBundle(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Archive().WriteArchive(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	r, w := io.Pipe()
	must(t, r.Close())
	if err := b.Archive().WriteArchive(t.Context(), w); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("nobody reads: %v", err)
	} else if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) {
		t.Errorf("the bundle is blamed: %v", err)
	}
}
