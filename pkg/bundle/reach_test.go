package bundle

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/contact"
)

func TestReach(t *testing.T) {
	answers := bundletest.Registry(t)
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(private.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	closed, refuses := strings.TrimPrefix(gone.URL, "http://"), strings.TrimPrefix(private.URL, "http://")

	images := []string{answers + "/team/a:v1", answers + "/team/b", refuses + "/team/c", "registry.example.com/team/d:v1"}
	got, err := Reach(t.Context(), images,
		map[string]string{"registry.example.com": answers + "/mirror"})
	want := []string{answers, refuses}
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}

	got, err = Reach(t.Context(), []string{answers + "/team/a:v1", closed + "/team/c:v1"}, nil)
	silent, is := errors.AsType[*contact.Error](err)
	if !is || silent.Host != closed || len(got) != 2 {
		t.Errorf("of a registry that is gone: %v, %v", got, err)
	}
	// A registry that answers may still not give the image, which Reach can find out of an image with a tag.
	got, err = Reach(t.Context(), []string{refuses + "/team/c", refuses + "/team/c:v1", answers + "/team/missing:v1"}, nil)
	if err == nil || !strings.Contains(err.Error(), refuses+"/team/c:v1 to this machine: it answers 403 Forbidden") || len(got) != 2 ||
		strings.Contains(err.Error(), answers) {
		t.Errorf("of a registry that refuses: %v, %v", got, err)
	}

	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	at := "registry.localtest:" + untrusted.URL[strings.LastIndex(untrusted.URL, ":")+1:]
	usual := remote.DefaultTransport
	t.Cleanup(func() { remote.DefaultTransport = usual })
	remote.DefaultTransport = &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, untrusted.Listener.Addr().String())
	}}
	for _, image := range []string{at + "/team/a", at + "/team/a:v1"} {
		_, err = Reach(t.Context(), []string{image}, nil)
		if err == nil || !strings.Contains(err.Error(), at+" has a certificate that this machine does not trust") {
			t.Errorf("of a registry with an unknown certificate, asked for %s: %v", image, err)
		}
	}
	remote.DefaultTransport = usual

	if _, err := Reach(t.Context(), []string{"UPPER CASE"}, nil); err == nil {
		t.Error("what is no image was taken for one")
	}
}
