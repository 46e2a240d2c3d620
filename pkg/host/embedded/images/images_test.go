package images

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/fleetctl/fleetctl/pkg/diag"
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
			Digest: digest, Annotations: map[string]string{"io.containerd.image.name": ref},
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

func TestLoadAndFindProgram(t *testing.T) {
	img := mustLoad(t, image(t, runtime.GOARCH,
		layer(t, entry{name: "usr/bin/tool", content: "#!tool"}, entry{name: "bin", link: "/usr/bin"}, entry{name: "data", content: "x", mode: 0o644}),
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

func TestWhiteouts(t *testing.T) {
	img := mustLoad(t, image(t, runtime.GOARCH,
		layer(t, entry{name: "a/one", content: "1"}, entry{name: "a/two", content: "2"}, entry{name: "b/old", content: "o"}, entry{name: "c", content: "c"}),
		layer(t, entry{name: "a/.wh.one"}, entry{name: "b/.wh..wh..opq"}, entry{name: "b/new", content: "n"}, entry{name: "c/now/a/folder", content: "f"}),
	))
	var got []string
	_ = walk(img.Root, func(name string, d fs.DirEntry) error {
		if !d.IsDir() {
			got = append(got, name)
		}
		return nil
	})
	slices.Sort(got)
	if want := []string{"a/two", "b/new", "c/now/a/folder"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
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

func TestWrongArchitectureIsRefusedByName(t *testing.T) {
	s := open(t)
	err := load(t, s, image(t, "s390x", layer(t, entry{name: "manager", content: "x"})))
	if err == nil || !strings.Contains(err.Error(), ref+" is for linux/s390x") || diag.Hint(err) == "" {
		t.Fatalf("got %v", err)
	}
}

func TestHostileLayers(t *testing.T) {
	for what, layers := range map[string][][]entry{
		"traversal":             {{{name: "../../escaped", content: "x"}}},
		"absolute":              {{{name: "/escaped/../../../escaped", content: "x"}}},
		"link out":              {{{name: "out", link: "../../../.."}, {name: "out/escaped", content: "x"}}},
		"absolute link out":     {{{name: "out", link: "OUTSIDE"}, {name: "out/escaped", content: "x"}}},
		"link out, next layer":  {{{name: "out", link: "../../../../.."}}, {{name: "out/escaped", content: "x"}}},
		"link at the name":      {{{name: "escaped", link: "OUTSIDE/escaped"}}, {{name: "escaped", content: "x"}}},
		"link chain":            {{{name: "d/e/f", link: "../.."}, {name: "d/e/f/g", link: "../../../../.."}, {name: "g/escaped", content: "x"}}},
		"hard link out":         {{{name: "escaped", link: "../../../victim", typ: tar.TypeLink}}},
		"hard link over a link": {{{name: "out", link: "OUTSIDE"}, {name: "mine", link: "out/victim", typ: tar.TypeLink}}},
		"whiteout out":          {{{name: "out", link: "OUTSIDE"}}, {{name: "out/.wh.victim"}}},
		"opaque out":            {{{name: "out", link: "OUTSIDE"}}, {{name: "out/.wh..wh..opq"}}},
		"whiteout of dotdot":    {{{name: ".wh..."}}, {{name: ".wh..."}}},
		"loop":                  {{{name: "a", link: "b"}, {name: "b", link: "a"}, {name: "a/f", content: "x"}}},
		"device":                {{{name: "dev/sda", typ: tar.TypeBlock}, {name: "dev/null", typ: tar.TypeChar}, {name: "pipe", typ: tar.TypeFifo}}},
	} {
		t.Run(what, func(t *testing.T) {
			outside := t.TempDir()
			victim := filepath.Join(outside, "victim")
			if err := os.WriteFile(victim, []byte("untouched"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(filepath.Join(outside, "deep", "store"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var all []v1.Layer
			for _, entries := range layers {
				for i := range entries {
					entries[i].link = strings.ReplaceAll(entries[i].link, "OUTSIDE", outside)
				}
				all = append(all, layer(t, entries...))
			}
			loadErr := load(t, s, image(t, runtime.GOARCH, all...))
			if raw, err := os.ReadFile(victim); err != nil || string(raw) != "untouched" {
				t.Errorf("victim: %q %v", raw, err)
			}
			_ = filepath.WalkDir(outside, func(p string, d fs.DirEntry, _ error) error {
				inStore := strings.HasPrefix(p, filepath.Join(s.dir, layersDir)+"/") || strings.HasPrefix(p, filepath.Join(s.dir, imagesDir)+"/")
				if d.Name() == "escaped" && !inStore {
					t.Errorf("escaped to %s", p)
				}
				if d.Type()&(fs.ModeDevice|fs.ModeNamedPipe) != 0 {
					t.Errorf("special file %s", p)
				}
				if d.Type()&fs.ModeSymlink != 0 && !strings.HasPrefix(p, filepath.Join(s.dir, imagesDir)) {
					if target, err := filepath.EvalSymlinks(p); err == nil && !strings.HasPrefix(target, filepath.Join(s.dir, layersDir)) {
						t.Errorf("%s leads to %s", p, target)
					}
				}
				return nil
			})
			if loadErr == nil {
				img, _, _ := s.Lookup(ref)
				_ = walk(img.Root, func(name string, d fs.DirEntry) error {
					if d.Type()&fs.ModeSymlink != 0 {
						target, err := filepath.EvalSymlinks(filepath.Join(img.Root, name))
						if err == nil && target != img.Root && !strings.HasPrefix(target, img.Root+"/") {
							t.Errorf("%s leads to %s", name, target)
						}
					}
					return nil
				})
			}
			nothingLeft(t, s)
		})
	}
}

// server is a registry that asks for a password if one is given.
func server(t *testing.T, password string) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		if password != "" && r.Method == http.MethodGet && given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func push(t *testing.T, ref string, img v1.Image) {
	t.Helper()
	target, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, img); err != nil {
		t.Fatal(err)
	}
}

func TestPull(t *testing.T) {
	host := server(t, "")
	img := image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"}), layer(t, entry{name: "g", content: "2"}))
	push(t, host+"/team/app:v1", img)
	s := open(t)
	var group sync.WaitGroup
	for range 8 { // one store, another store on the same folder
		for _, each := range []*Store{s, {dir: s.dir}} {
			group.Go(func() {
				got, err := each.Get(context.Background(), host+"/team/app:v1", Pull{})
				if err != nil {
					t.Error(err)
					return
				}
				if contentOf(t, got, "f")+contentOf(t, got, "g") != "12" {
					t.Error("wrong content")
				}
			})
		}
	}
	group.Wait()
	nothingLeft(t, s)
	digest, _ := img.Digest()
	if got, err := s.Get(t.Context(), host+"/team/app@"+digest.String(), Pull{Never: true}); err != nil || got.Digest != digest.String() {
		t.Errorf("by digest: %v %v", got, err)
	}
}

func TestPullPolicies(t *testing.T) {
	host := server(t, "")
	tag := host + "/team/app:latest"
	s := open(t)
	if _, err := s.Get(t.Context(), tag, Pull{Never: true}); err == nil || !strings.Contains(err.Error(), "imagePullPolicy") {
		t.Errorf("never: %v", err)
	}
	get := func(pull Pull) string {
		img, err := s.Get(t.Context(), tag, pull)
		if err != nil {
			t.Fatal(err)
		}
		return contentOf(t, img, "f")
	}
	push(t, tag, image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"})))
	first := get(Pull{})
	push(t, tag, image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "2"})))
	if got := first + get(Pull{}) + get(Pull{Always: true}) + get(Pull{}); got != "1122" {
		t.Errorf("got %s", got)
	}
}

func TestPullPrivateAndMirror(t *testing.T) {
	host := server(t, "s3cret")
	target, _ := name.ParseReference(host + "/mirrored/team/app:v1")
	img := image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"}))
	keys, err := KeychainFromDockerConfig(fmt.Appendf(nil, `{"auths":{"http://%s/v1/":{"username":"u","password":"s3cret"}}}`, host))
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, img, remote.WithAuthFromKeychain(keys)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.TempDir(), Options{Mirrors: map[string]string{"registry.example.com": host + "/mirrored"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(t.Context(), "registry.example.com/team/app:v1", Pull{})
	if err == nil || !strings.Contains(diag.Hint(err), "imagePullSecrets") {
		t.Fatalf("without credentials: %v", err)
	}
	if _, err := s.Get(t.Context(), "registry.example.com/team/app:v1", Pull{Keychain: keys}); err != nil {
		t.Fatal(err)
	}
}

func TestPullMissing(t *testing.T) {
	host := server(t, "")
	_, err := open(t).Get(t.Context(), host+"/team/app:v9", Pull{})
	if err == nil || !strings.Contains(err.Error(), "app:v9") || !strings.Contains(diag.Hint(err), "name and tag") {
		t.Fatalf("got %v (hint %q)", err, diag.Hint(err))
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
