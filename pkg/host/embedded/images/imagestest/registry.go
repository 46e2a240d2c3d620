package imagestest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is the only user of a registry with a password.
const User = "u"

// Registry is a registry on this machine, HOST:PORT, for the time of a test. It asks readers for the password if one is given.
func Registry(t testing.TB, password string) string {
	t.Helper()
	return Serve(t, password, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
}

// Serve is Registry with a handler of one's own behind the password.
func Serve(t testing.TB, password string, inner http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		if password != "" && r.Method == http.MethodGet && (given != password || user != User) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// Push puts an image under ref, HOST:PORT/NAME:TAG, and returns its digest. An empty password is none.
func Push(t testing.TB, ref, password string, img v1.Image) (digest string) {
	t.Helper()
	target, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	who := authn.Anonymous
	if password != "" {
		who = &authn.Basic{Username: User, Password: password}
	}
	if err := remote.Write(target, img, remote.WithAuth(who)); err != nil {
		t.Fatal(err)
	}
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

// PushProgram is Push of an image whose entrypoint is /manager, a copy of the program.
func PushProgram(t testing.TB, ref, password, program string) (digest string) {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	layer := static.NewLayer(layerOf(t, map[string][]byte{"manager": content}), types.OCIUncompressedLayer)
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err == nil {
		img, err = mutate.ConfigFile(img, &v1.ConfigFile{
			OS: "linux", Architecture: runtime.GOARCH, Config: v1.Config{Entrypoint: []string{"/manager"}},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return Push(t, ref, password, img)
}
