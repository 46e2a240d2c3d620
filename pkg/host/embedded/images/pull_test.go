package images

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
)

func TestPull(t *testing.T) {
	host := imagestest.Registry(t, "")
	img := image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"}), layer(t, entry{name: "g", content: "2"}))
	imagestest.Push(t, host+"/team/app:v1", "", img)
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
	host := imagestest.Registry(t, "")
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
	imagestest.Push(t, tag, "", image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"})))
	first := get(Pull{})
	imagestest.Push(t, tag, "", image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "2"})))
	if got := first + get(Pull{}) + get(Pull{Always: true}) + get(Pull{}); got != "1122" {
		t.Errorf("got %s", got)
	}
}

func TestPullPrivateAndMirror(t *testing.T) {
	host := imagestest.Registry(t, "s3cret")
	img := image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"}))
	keys, err := KeychainFromDockerConfig(fmt.Appendf(nil, `{"auths":{"http://%s/v1/":{"username":"u","password":"s3cret"}}}`, host))
	if err != nil {
		t.Fatal(err)
	}
	imagestest.Push(t, host+"/mirrored/team/app:v1", "s3cret", img)
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
	host := imagestest.Registry(t, "")
	_, err := open(t).Get(t.Context(), host+"/team/app:v9", Pull{})
	if err == nil || !strings.Contains(err.Error(), "app:v9") || !strings.Contains(diag.Hint(err), "name and tag") {
		t.Fatalf("got %v (hint %q)", err, diag.Hint(err))
	}
}

// TestPullWithTheUsersLogin: what docker login wrote counts where no Secret knows the registry.
func TestPullWithTheUsersLogin(t *testing.T) {
	host := imagestest.Registry(t, "s3cret")
	imagestest.Push(t, host+"/team/app:v1", "s3cret", image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"})))
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	login := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(imagestest.User+":s3cret")))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	others, err := KeychainFromDockerConfig([]byte(`{"auths":{"registry.example.com":{"username":"x","password":"y"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t).Get(t.Context(), host+"/team/app:v1", Pull{Keychain: others}); err != nil {
		t.Fatal(err)
	}
}

// TestPullOfOtherContent: a registry sends content of another digest, cuts the content off, or sends an image for another machine.
func TestPullOfOtherContent(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var spoil func([]byte) []byte
	host := imagestest.Serve(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoil == nil || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			inner.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		content := answer.Body.Bytes()
		if !bytes.HasPrefix(content, []byte("{")) { // a layer, not the config
			content = spoil(content)
		}
		_, _ = w.Write(content)
	}))
	tag := host + "/team/app:v1"
	imagestest.Push(t, tag, "", image(t, runtime.GOARCH, layer(t, entry{name: "f", content: string(randomish(1 << 20))})))
	for what, change := range map[string]func([]byte) []byte{
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"replaced":  func(b []byte) []byte { return append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1) },
	} {
		spoil = change
		s := open(t)
		if _, err := s.Get(t.Context(), tag, Pull{}); err == nil || !strings.Contains(err.Error(), tag) {
			t.Errorf("%s: %v", what, err)
		}
		if _, there, err := s.Lookup(tag); there || err != nil {
			t.Errorf("%s: it is in the store: %v %v", what, there, err)
		}
		nothingLeft(t, s)
		spoil = nil
		if _, err := s.Get(t.Context(), tag, Pull{}); err != nil {
			t.Errorf("%s: and then whole: %v", what, err)
		}
	}
	imagestest.Push(t, tag, "", image(t, "mips", layer(t, entry{name: "f", content: "1"})))
	if _, err := open(t).Get(t.Context(), tag, Pull{}); err == nil || !strings.Contains(err.Error(), "linux/mips") {
		t.Errorf("another architecture: %v", err)
	}
}

// A caller that gives up takes its download along. Whoever waits for the same image gets it all the same.
func TestPullGoesOnWithoutTheFirst(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var first sync.Once
	begun := make(chan struct{})
	host := imagestest.Serve(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stall := false
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/manifests/v1") {
			first.Do(func() { stall = true })
		}
		if stall {
			close(begun)
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	ref := host + "/team/app:v1"
	imagestest.Push(t, ref, "", image(t, runtime.GOARCH, layer(t, entry{name: "f", content: "1"})))
	s := open(t)
	ctx, giveUp := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := s.Get(ctx, ref, Pull{}); !errors.Is(err, context.Canceled) {
			t.Errorf("the one that gave up: %v", err)
		}
	})
	<-begun
	for range 8 {
		group.Go(func() {
			if _, err := s.Get(t.Context(), ref, Pull{}); err != nil {
				t.Errorf("one that waited: %v", err)
			}
		})
	}
	time.AfterFunc(300*time.Millisecond, giveUp) // by then they wait; if not, they pull by themselves
	group.Wait()
	nothingLeft(t, s)
}
