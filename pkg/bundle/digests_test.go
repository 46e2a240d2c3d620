package bundle

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/host"
)

// indexOf returns an index of images for these architectures, in order, and the digests of the images.
func indexOf(t *testing.T, architectures ...string) (v1.ImageIndex, []string) {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	var digests []string
	for i, arch := range architectures {
		img := newImage(t, arch, "for "+arch, strings.Repeat("x", i))
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		digest, err := img.Digest()
		must(t, err)
		digests = append(digests, digest.String())
	}
	return index, digests
}

func TestDigestsAreAlikeInABundleAndItsRegistry(t *testing.T) {
	r := newRegistry(t)
	index, images := indexOf(t, "amd64", "arm64")
	whole, err := index.Digest()
	must(t, err)
	app, single := r.push(t, "team/app:v1", index), r.push(t, "team/single:v1", newImage(t, "amd64", "one"))
	there, err := Resolve(t.Context(), app, nil, images[1])
	must(t, err)
	if there.Digest != whole.String() || !slices.Equal(there.Images, images[1:]) || !there.Has(images[1]) || there.Has("sha256:0") {
		t.Errorf("the registry has %+v, want %s of %v", there, whole, images)
	}
	dir := filepath.Join(t.TempDir(), "bundle")
	must(t, fill(t.Context(), t, dir, Sources{Images: []string{app, single}, Architecture: "amd64"}))
	b := openBundle(t, dir)
	here, err := b.Digests(app)
	if err != nil || here.Digest != there.Digest || !slices.Equal(here.Images, images[:1]) {
		t.Errorf("the bundle has %+v, %v", here, err)
	}
	// An image without an index has its own digest in the registry and in the bundle.
	alone, err := b.Digests(single)
	must(t, err)
	if there, err := Resolve(t.Context(), single, nil, ""); err != nil || there.Digest != alone.Digest || len(there.Images) > 0 {
		t.Errorf("the bundle has %+v, the registry %+v, %v", alone, there, err)
	}
	// Resolve asks the mirror instead of the registry. The name stays.
	registry, _, _ := strings.Cut(app, "/")
	if mirrored, err := Resolve(t.Context(), "registry.example.com/app:v1",
		map[string]string{"registry.example.com": registry + "/team"}, ""); err != nil ||
		mirrored.Digest != whole.String() {
		t.Errorf("the mirror has %+v, %v", mirrored, err)
	}

	// The digest of the index finds the image. A host gets the image under that name, with the proof.
	byDigest := strings.TrimSuffix(app, ":v1") + "@" + whole.String()
	for _, ref := range []string{byDigest, app + "@" + whole.String(), strings.TrimSuffix(app, ":v1") + "@" + images[0]} {
		if e, err := b.Image(ref); err != nil || e.Digest != images[0] {
			t.Errorf("%s: %+v, %v", ref, e, err)
		}
	}
	for _, ref := range []string{strings.TrimSuffix(app, ":v1") + "@" + images[1], single + "@" + whole.String()} {
		if _, err := b.Image(ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	archive := b.Archive(app, app+"@"+whole.String())
	if got := archive.Names(); !slices.Equal(got, []string{app, byDigest}) && !slices.Equal(got, []string{byDigest, app}) {
		t.Errorf("names %v", got)
	}
	if got := archive.(host.Digests).Digest(byDigest); got != images[0] {
		t.Errorf("digest %s", got)
	}
	var out bytes.Buffer
	must(t, archive.WriteArchive(t.Context(), &out))
	chosen, err := archive.(interface {
		choose(refs []string) ([]image, error)
	}).choose(nil)
	must(t, err)
	written, err := ociIndex(chosen)
	must(t, err)
	if got := bytes.Count(written, []byte(host.AnnotationIndex)); got != 1 || !bytes.Contains(written, []byte(`"`+byDigest+`"`)) {
		t.Errorf("%d images come with a proof:\n%s", got, written)
	}
	if b.images[app].descriptor.Annotations[annotationImageName] != app {
		t.Error("the image in the bundle has got another name")
	}
	if n, err := io.Copy(io.Discard, &out); n == 0 || err != nil {
		t.Error(n, err)
	}
}

// The bundle's annotation with an index counts only if the index contains the image.
func TestForgedIndex(t *testing.T) {
	r := newRegistry(t)
	index, _ := indexOf(t, "amd64", "arm64")
	raw, err := index.RawManifest()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := Create(dir)
	must(t, err)
	for ref, proof := range map[string][]byte{
		r.ref("team/app:v1"): raw, r.ref("team/app:v2"): []byte("{"),
		r.ref("team/app:v3"): []byte(`{"manifests":[]}`),
	} {
		d, err := w.storeImage(t.Context(), newImage(t, "amd64", "another"))
		must(t, err)
		must(t, w.recordImage(ref, d, proof))
	}
	must(t, w.Close())
	b := openBundle(t, dir)
	for _, tag := range []string{"v1", "v2", "v3"} {
		if d, err := b.Digests(r.ref("team/app:" + tag)); err != nil || d.Digest != d.Images[0] {
			t.Errorf("%s: %+v, %v", tag, d, err)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	r := newRegistry(t)
	for ref, want := range map[string]string{
		r.ref("team/none:v1"): "find the digest of image " + r.ref("team/none:v1"), "a b": "is not an image reference",
	} {
		if _, err := Resolve(t.Context(), ref, nil, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	gone := newRegistry(t)
	ref := gone.ref("team/app:v1")
	gone.Close()
	_, err := Resolve(t.Context(), ref, nil, "")
	if _, silent := errors.AsType[*contact.Error](err); !silent {
		t.Errorf("got %v", err)
	}
}
