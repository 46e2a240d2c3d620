package bundle

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

const (
	registryUser     = "robot"
	registryPassword = "s3cret-token"
)

// testRegistry is a registry that counts pulls and can be told to fail.
type testRegistry struct {
	*httptest.Server
	mu sync.Mutex
	// pulls has the number of GETs of each blob, by digest.
	pulls map[string]int
	// cut, if set, is the digest of a blob whose answer breaks off in the middle.
	cut string
	// password, if set, is required.
	password string
}

func newRegistry(t *testing.T) *testRegistry {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(t.TempDir(), "none"))
	r := &testRegistry{pulls: map[string]int{}}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user, password, _ := req.BasicAuth(); r.password != "" && (user != registryUser || password != r.password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, digest, isBlob := strings.Cut(req.URL.Path, "/blobs/")
		if !isBlob || req.Method != http.MethodGet {
			inner.ServeHTTP(w, req)
			return
		}
		r.mu.Lock()
		r.pulls[digest]++
		cut := r.cut == digest
		r.mu.Unlock()
		if cut {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("only this"))
			return
		}
		inner.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// ref returns the reference of a repository and tag in this registry.
func (r *testRegistry) ref(repository string) string {
	return strings.TrimPrefix(r.URL, "http://") + "/" + repository
}

func (r *testRegistry) push(t *testing.T, repository string, img remote.Taggable) string {
	t.Helper()
	ref, err := name.ParseReference(r.ref(repository))
	must(t, err)
	auth := remote.WithAuth(&authn.Basic{Username: registryUser, Password: registryPassword})
	switch img := img.(type) {
	case v1.Image:
		must(t, remote.Write(ref, img, auth))
	case v1.ImageIndex:
		must(t, remote.WriteIndex(ref, img, auth))
	}
	return ref.Name()
}

// fill runs Fill on dir and closes or discards the writer as a command would.
func fill(ctx context.Context, t *testing.T, dir string, s Sources) error {
	t.Helper()
	w, err := Create(dir)
	must(t, err)
	defer w.Discard()
	if err := Fill(ctx, w, s, progress.Discard); err != nil {
		return err
	}
	return w.Close()
}

func TestFill(t *testing.T) {
	r := newRegistry(t)
	app := r.push(t, "team/app:v1", newImage(t, "arm64", "shared", "app"))
	tool := r.push(t, "team/tool:v1", newImage(t, "arm64", "shared", "tool"))
	dir := filepath.Join(t.TempDir(), "bundle")
	must(t, fill(t.Context(), t, dir, Sources{
		Images: []string{app, tool, app}, Architecture: "arm64", Files: map[string][]byte{pathRB: []byte("kind: ClusterRole\n")},
	}))
	b := openBundle(t, dir)
	must(t, b.Verify(t.Context()))
	if got := b.Index(); len(got) != 3 || got[0].Platform != "linux/arm64" {
		t.Errorf("index %+v", got)
	}
	for digest, n := range r.pulls {
		if n != 1 {
			t.Errorf("%s was pulled %d times", digest, n)
		}
	}
}

func TestFillChoosesThePlatform(t *testing.T) {
	r := newRegistry(t)
	index := v1.ImageIndex(empty.Index)
	digests := map[string]v1.Hash{}
	for _, arch := range []string{"amd64", "arm64"} {
		img := newImage(t, arch, "for "+arch)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		var err error
		digests[arch], err = img.Digest()
		must(t, err)
	}
	ref := r.push(t, "team/app:v1", index)
	for arch, want := range digests {
		dir := filepath.Join(t.TempDir(), "bundle")
		must(t, fill(t.Context(), t, dir, Sources{Images: []string{ref}, Architecture: arch}))
		if e, err := openBundle(t, dir).Image(ref); err != nil || e.Digest != want.String() || e.Platform != "linux/"+arch {
			t.Errorf("%s: %+v, %v", arch, e, err)
		}
	}
	t.Run("by the digest of its index", func(t *testing.T) {
		digest, err := index.Digest()
		must(t, err)
		raw, err := index.RawManifest()
		must(t, err)
		dir := filepath.Join(t.TempDir(), "bundle")
		byDigest := strings.TrimSuffix(ref, ":v1") + "@" + digest.String()
		must(t, fill(t.Context(), t, dir, Sources{Images: []string{byDigest, ref}, Architecture: "arm64"}))
		b := openBundle(t, dir)
		if e, err := b.Image(byDigest); err != nil || e.Digest != digests["arm64"].String() {
			t.Errorf("%+v, %v", e, err)
		}
		if got := b.images[byDigest].descriptor.Annotations[host.AnnotationIndex]; got != string(raw) {
			t.Errorf("with the index %q, want %q", got, raw)
		}
		if got := b.images[ref].descriptor.Annotations[host.AnnotationIndex]; got != string(raw) {
			t.Errorf("a tag comes with the index %q, want %q", got, raw)
		}
	})
	single := r.push(t, "team/single:v1", newImage(t, "amd64", "x"))
	for _, ref := range []string{ref, single} {
		err := fill(t.Context(), t, filepath.Join(t.TempDir(), "bundle"), Sources{Images: []string{ref}, Architecture: "riscv64"})
		if err == nil || !strings.Contains(err.Error(), ref) || !strings.Contains(err.Error(), "riscv64") {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestFillTellsAllFailures(t *testing.T) {
	r := newRegistry(t)
	there := r.push(t, "team/app:v1", newImage(t, "amd64", "app"))
	missing, other := r.ref("team/app:v2"), r.ref("nobody/has:v1")
	dir := filepath.Join(t.TempDir(), "bundle")
	err := fill(t.Context(), t, dir, Sources{Images: []string{missing, there, other}, Architecture: "amd64"})
	if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), other) ||
		strings.Contains(err.Error(), there) || diag.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	if _, err := Open(t.Context(), dir); err == nil {
		t.Error("a bundle that lacks images was opened")
	}
	// The pulled content is kept.
	must(t, fill(t.Context(), t, dir, Sources{Images: []string{there}, Architecture: "amd64"}))
	for digest, n := range r.pulls {
		if n != 1 {
			t.Errorf("%s was pulled %d times", digest, n)
		}
	}
	err = fill(t.Context(), t, dir, Sources{Images: []string{"A B", there, "${C}"}})
	if err == nil || !strings.Contains(err.Error(), "A B") || !strings.Contains(err.Error(), "${C}") {
		t.Errorf("bad references: %v", err)
	}
	if err := fill(t.Context(), t, dir, Sources{Files: map[string][]byte{"../evil": nil}}); err == nil {
		t.Error("a bad path was taken")
	}
}

func TestFillWithCredentials(t *testing.T) {
	r := newRegistry(t)
	r.password = registryPassword
	ref := r.push(t, "team/app:v1", newImage(t, "amd64", "app"))
	sources := Sources{Images: []string{ref}, Architecture: "amd64"}
	dir := filepath.Join(t.TempDir(), "bundle")
	login := func(password string) {
		auth := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + password))
		config := `{"auths":{"` + strings.TrimPrefix(r.URL, "http://") + `":{"auth":"` + auth + `"}}}`
		must(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600))
	}
	refused := func(when string) {
		t.Helper()
		err := fill(t.Context(), t, dir, sources)
		if err == nil || !strings.Contains(err.Error(), ref) || !strings.Contains(diag.Hint(err), "docker login") {
			t.Errorf("%s: %v (hint %q)", when, err, diag.Hint(err))
		}
		if err != nil && strings.Contains(err.Error(), "wrong-token") {
			t.Errorf("%s: the error tells the password: %v", when, err)
		}
	}
	refused("not logged in")
	login("wrong-token")
	refused("wrong password")
	login(registryPassword)
	must(t, fill(t.Context(), t, dir, sources))
}

func TestFillResumes(t *testing.T) {
	r := newRegistry(t)
	img := newImage(t, "amd64", "first", "second", "third")
	ref := r.push(t, "team/app:v1", img)
	m, err := img.Manifest()
	must(t, err)
	first, second := m.Layers[0].Digest.String(), m.Layers[1].Digest.String()
	sources := Sources{Images: []string{ref}, Architecture: "amd64"}
	dir := filepath.Join(t.TempDir(), "bundle")

	r.cut = second
	if err := fill(t.Context(), t, dir, sources); err == nil || !strings.Contains(err.Error(), second) {
		t.Fatalf("a layer that is cut off: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, blobPath(m.Layers[1].Digest))); err == nil {
		t.Error("half a layer was kept")
	}
	r.cut = ""
	must(t, fill(t.Context(), t, dir, sources))
	if r.pulls[first] != 1 {
		t.Errorf("the first layer was pulled %d times", r.pulls[first])
	}
	must(t, openBundle(t, dir).Verify(t.Context()))
}

func TestFillStops(t *testing.T) {
	r := newRegistry(t)
	ref := r.push(t, "team/app:v1", newImage(t, "amd64", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := fill(ctx, t, filepath.Join(t.TempDir(), "bundle"), Sources{Images: []string{ref}})
	if !errors.Is(err, context.Canceled) || diag.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
}
