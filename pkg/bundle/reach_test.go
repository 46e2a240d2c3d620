package bundle

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

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
	if _, err := Reach(t.Context(), []string{"UPPER CASE"}, nil); err == nil {
		t.Error("what is no image was taken for one")
	}
}
