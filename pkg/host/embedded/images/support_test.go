package images

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/fleetctl/fleetctl/pkg/host"
)

// entry of a layer; the type follows from the name and link unless typ is set.
type entry struct {
	name, content, link string
	typ                 byte
	mode                int64
}

func layer(t *testing.T, entries ...entry) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.typ, Size: int64(len(e.content)), Mode: e.mode, Linkname: e.link}
		switch {
		case h.Typeflag != 0:
		case e.link != "":
			h.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		default:
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func image(t *testing.T, arch string, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Entrypoint = []string{"/manager"}
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// archive is a host.ImageArchive with what spoil makes of its blobs.
type archive struct {
	t      *testing.T
	images map[string]v1.Image
	index  string // host.AnnotationIndex of each
	spoil  func(digest v1.Hash, content []byte) []byte
	read   []string // what was read in whole, by WriteArchive calls
}

func (a *archive) Names() []string {
	var names []string
	for ref := range a.images {
		names = append(names, ref)
	}
	slices.Sort(names)
	return names
}

func (a *archive) WriteArchive(_ context.Context, w io.Writer, refs ...string) error {
	index := v1.IndexManifest{SchemaVersion: 2}
	blobs, order := map[v1.Hash][]byte{}, []v1.Hash{}
	add := func(h v1.Hash, content []byte) {
		if _, ok := blobs[h]; !ok {
			blobs[h] = content
			order = append(order, h)
		}
	}
	for _, ref := range refs {
		img := a.images[ref]
		digest, _ := img.Digest()
		manifest, _ := img.RawManifest()
		config, _ := img.RawConfigFile()
		configDigest, _ := img.ConfigName()
		index.Manifests = append(index.Manifests, v1.Descriptor{
			Digest: digest, Annotations: map[string]string{"io.containerd.image.name": ref, host.AnnotationIndex: a.index},
		})
		add(digest, manifest)
		add(configDigest, config)
		layers, _ := img.Layers()
		for _, l := range layers {
			h, _ := l.Digest()
			r, err := l.Compressed()
			if err != nil {
				return err
			}
			content, _ := io.ReadAll(r)
			add(h, content)
		}
	}
	out := tar.NewWriter(w)
	raw, _ := json.Marshal(index)
	write := func(name string, content []byte) error {
		if err := out.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := out.Write(content)
		return err
	}
	if err := write("index.json", raw); err != nil {
		return err
	}
	for _, h := range order {
		content := blobs[h]
		if a.spoil != nil {
			content = a.spoil(h, content)
		}
		if err := write("blobs/sha256/"+h.Hex, content); err != nil {
			return err
		}
		a.read = append(a.read, h.Hex)
	}
	return out.Close()
}

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const ref = "registry.example.com/team/manager:v1"

func load(t *testing.T, s *Store, img v1.Image) error {
	t.Helper()
	return s.Load(t.Context(), &archive{t: t, images: map[string]v1.Image{ref: img}})
}

func mustLoad(t *testing.T, img v1.Image) Image {
	t.Helper()
	s := open(t)
	if err := load(t, s, img); err != nil {
		t.Fatal(err)
	}
	got, ok, err := s.Lookup(ref)
	if err != nil || !ok {
		t.Fatalf("after load: %v %v", ok, err)
	}
	return got
}

func contentOf(t *testing.T, img Image, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(img.Root, name))
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}

// randomish content does not compress.
func randomish(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func nothingLeft(t *testing.T, s *Store) {
	t.Helper()
	entries, err := os.ReadDir(s.path(tmpDir))
	if err != nil || len(entries) > 0 {
		t.Errorf("left in tmp: %v %v", entries, err)
	}
}
