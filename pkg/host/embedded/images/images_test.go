package images

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestLoadAndFindProgram(t *testing.T) {
	img := mustLoad(t, image(t, runtime.GOARCH,
		layer(t, entry{name: "usr/bin/tool", content: "#!tool"}, entry{name: "bin", link: "/usr/bin"},
			entry{name: "data", content: "x", mode: 0o644}),
		layer(t, entry{name: "manager", content: "#!manager"}, entry{name: "bin/alias", link: "/manager"}),
	))
	for name, want := range map[string]string{"/manager": "#!manager", "tool": "#!tool", "/bin/tool": "#!tool", "alias": "#!manager"} {
		path, err := img.Program(name)
		if err != nil {
			t.Fatal(err)
		}
		if raw, _ := os.ReadFile(path); string(raw) != want || !strings.HasPrefix(path, img.Root) {
			t.Errorf("%s: %s with %q", name, path, raw)
		}
	}
	if _, err := img.Program("/nothing"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), ref) {
		t.Errorf("missing program: %v", err)
	}
	if _, err := img.Program("/data"); err == nil {
		t.Error("a file that is not executable is a program")
	}
	if img.Config.Entrypoint[0] != "/manager" {
		t.Errorf("config: %+v", img.Config)
	}
}

// An image of a manifest that pins the digest of an index, which an archive has for one platform.
func TestLoadByDigestOfAnIndex(t *testing.T) {
	img := image(t, runtime.GOARCH, layer(t, entry{name: "manager", content: "#!manager"}))
	index := func(img v1.Image) (raw, ref string) {
		i := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})
		content, err := i.RawManifest()
		if err != nil {
			t.Fatal(err)
		}
		digest, err := i.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return string(content), "registry.example.com/team/manager@" + digest.String()
	}
	raw, pinned := index(img)
	s := open(t)
	for _, again := range []string{"first", "again, when the image is there"} {
		if err := s.Load(t.Context(), &archive{t: t, index: raw, images: map[string]v1.Image{pinned: img}}); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		got, ok, err := s.Lookup(pinned)
		if err != nil || !ok || contentOf(t, got, "manager") != "#!manager" {
			t.Fatalf("%s: %v, %v", again, ok, err)
		}
	}
	otherRaw, otherPinned := index(image(t, runtime.GOARCH, layer(t, entry{name: "manager", content: "#!other"})))
	for text, a := range map[string]*archive{
		"an index without the image":          {index: otherRaw, images: map[string]v1.Image{otherPinned: img}},
		"an index that has another digest":    {index: raw, images: map[string]v1.Image{otherPinned: img}},
		"no index":                            {images: map[string]v1.Image{otherPinned: img}},
		"something that is no index at all":   {index: "x", images: map[string]v1.Image{otherPinned: img}},
		"an image of another index's archive": {index: otherRaw, images: map[string]v1.Image{pinned: img}},
	} {
		fresh := open(t)
		a.t = t
		if err := fresh.Load(t.Context(), a); err == nil || !strings.Contains(err.Error(), "the index with that digest does not name") {
			t.Errorf("%s: %v", text, err)
		}
		for _, ref := range []string{pinned, otherPinned} {
			if _, ok, err := fresh.Lookup(ref); ok || err != nil {
				t.Errorf("%s: %s is there: %v, %v", text, ref, ok, err)
			}
		}
	}
}

func TestLayersAreShared(t *testing.T) {
	s := open(t)
	shared := layer(t, entry{name: "big", content: strings.Repeat("x", maxDocument+1)})
	a := &archive{t: t, images: map[string]v1.Image{
		"registry.example.com/a:1": image(t, runtime.GOARCH, shared),
		"registry.example.com/b:1": image(t, runtime.GOARCH, shared, layer(t, entry{name: "own", content: "x"})),
	}}
	if err := s.Load(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	var files []os.FileInfo
	for _, r := range a.Names() {
		img, ok, err := s.Lookup(r)
		if err != nil || !ok {
			t.Fatal(r, ok, err)
		}
		info, err := os.Stat(filepath.Join(img.Root, "big"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, info)
	}
	if !os.SameFile(files[0], files[1]) {
		t.Error("the layer is there twice")
	}
	a.read = nil
	if err := s.Load(t.Context(), a); err != nil || len(a.read) > 1 {
		t.Errorf("second load read %v: %v", a.read, err)
	}
}

func TestSameTagNewImage(t *testing.T) {
	s := open(t)
	for _, content := range []string{"old", "new"} {
		if err := load(t, s, image(t, runtime.GOARCH, layer(t, entry{name: "f", content: content}))); err != nil {
			t.Fatal(err)
		}
		img, _, _ := s.Lookup(ref)
		if got := contentOf(t, img, "f"); got != content {
			t.Errorf("got %q, want %q", got, content)
		}
	}
}

func TestDamagedArchiveIsRefusedByName(t *testing.T) {
	for _, size := range []int{10, maxDocument + 10} {
		for what, spoil := range map[string]func([]byte) []byte{
			"flipped":   func(b []byte) []byte { b = bytes.Clone(b); b[len(b)/2] ^= 1; return b },
			"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		} {
			t.Run(fmt.Sprint(what, size), func(t *testing.T) {
				l := layer(t, entry{name: "f", content: string(randomish(size))})
				digest, _ := l.Digest()
				s := open(t)
				a := &archive{t: t, images: map[string]v1.Image{ref: image(t, runtime.GOARCH, l)}}
				a.spoil = func(h v1.Hash, content []byte) []byte {
					if h == digest {
						return spoil(content)
					}
					return content
				}
				err := s.Load(t.Context(), a)
				if err == nil || !strings.Contains(err.Error(), ref) || !strings.Contains(err.Error(), digest.Hex) {
					t.Fatalf("got %v", err)
				}
				if _, ok, _ := s.Lookup(ref); ok {
					t.Error("it is in the store")
				}
				nothingLeft(t, s)
				a.spoil = nil
				if err := s.Load(t.Context(), a); err != nil {
					t.Errorf("whole again: %v", err)
				}
			})
		}
	}
}

func TestWrongArchitectureIsRefusedByName(t *testing.T) {
	s := open(t)
	err := load(t, s, image(t, "s390x", layer(t, entry{name: "manager", content: "x"})))
	if err == nil || !strings.Contains(err.Error(), ref+" is for linux/s390x") || diag.Hint(err) == "" {
		t.Fatalf("got %v", err)
	}
}

func TestDamagedStoreIsRepaired(t *testing.T) {
	s := open(t)
	img := image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"}))
	if err := load(t, s, img); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.path(layersDir)); err != nil { // somebody emptied a part of the cache
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path(layersDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Lookup(ref); ok || err != nil {
		t.Fatalf("damaged: %v %v", ok, err)
	}
	if err := load(t, s, img); err != nil {
		t.Fatal(err)
	}
	got, ok, err := s.Lookup(ref)
	if err != nil || !ok || contentOf(t, got, "f") != "1" {
		t.Fatalf("repaired: %v %v", ok, err)
	}
	nothingLeft(t, s)
}
