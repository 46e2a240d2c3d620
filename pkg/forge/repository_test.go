package forge

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/forge/forgetest"
)

// A missing repository is made once, private, for the owner in the URL; one that exists stays as it is.
func TestEnsureRepository(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		t.Run(string(kind), func(t *testing.T) {
			fake := forgetest.New("s3cret")
			server := httptest.NewTLSServer(fake)
			defer server.Close()
			remote, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{
				Type: kind, Remote: remote, Token: "s3cret", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			}
			for _, step := range []struct {
				path string
				made bool
			}{{"/platform/fleet.git", false}, {"/platform/eu.git", true}, {"/platform/eu.git", false}, {"/ada/mine", true}} {
				remote.Path = step.path
				if made, err := EnsureRepository(t.Context(), o); err != nil || made != step.made {
					t.Errorf("%s: made %t, %v", step.path, made, err)
				}
			}
			want := []forgetest.Repository{
				{Path: "platform/fleet", Private: true}, {Path: "platform/eu", Private: true}, {Path: "ada/mine", Private: true},
			}
			if diff := cmp.Diff(want, fake.Repositories()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			remote.Path = "/strangers/fleet"
			if _, err := EnsureRepository(t.Context(), o); err == nil || !strings.Contains(err.Error(), "/strangers/fleet") ||
				!strings.Contains(diag.Hint(err), "owner") {
				t.Errorf("for another owner: %v (%s)", err, diag.Hint(err))
			}
			o.Token = "wrong-7"
			if _, err := EnsureRepository(t.Context(), o); err == nil || strings.Contains(err.Error(), "wrong-7") ||
				!strings.Contains(diag.Hint(err), "does not accept the token") {
				t.Errorf("a bad token: %v (%s)", err, diag.Hint(err))
			}
			o.Token = ""
			if _, err := EnsureRepository(t.Context(), o); err == nil || !strings.Contains(diag.Hint(err), "right to make repositories") {
				t.Errorf("no token: %v (%s)", err, diag.Hint(err))
			}
		})
	}
}

// A forge that answers with anything at all makes neither a panic nor a repository that is not there.
func TestEnsureRepositoryAtAHostileForge(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		for _, body := range []string{"", "null", "{}", "[]", "[null]", `"x"`, "<html>", `{"id":"x","login":7,"username":[]}`} {
			for _, status := range []int{http.StatusOK, http.StatusNoContent, http.StatusForbidden, http.StatusInternalServerError} {
				first := true
				get := func() (int, string) {
					if first {
						first = false
						return http.StatusNotFound, body
					}
					return status, body
				}
				o := answering(t, kind, get, func() (int, string) { return status, body })
				if made, err := EnsureRepository(t.Context(), o); made && status >= http.StatusBadRequest {
					t.Errorf("%s: made with %d %q, %v", kind, status, body, err)
				}
			}
		}
	}
}

// A tag gets one release, with its notes; a release that exists stays as it is.
func TestEnsureRelease(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		t.Run(string(kind), func(t *testing.T) {
			fake := forgetest.New("s3cret")
			server := httptest.NewTLSServer(fake)
			defer server.Close()
			remote, err := url.Parse(server.URL + "/platform/fleet.git")
			if err != nil {
				t.Fatal(err)
			}
			o := Options{
				Type: kind, Remote: remote, Token: "s3cret", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			}
			for _, created := range []bool{true, false} {
				r, err := EnsureRelease(t.Context(), o, "team/v1.0.0", "- Add cluster demo")
				want := &Release{URL: server.URL + "/platform/fleet/releases/team/v1.0.0", Created: created}
				if diff := cmp.Diff(want, r); diff != "" || err != nil {
					t.Errorf("%v (-want +got)\n%s", err, diff)
				}
			}
			want := []forgetest.Release{{Tag: "team/v1.0.0", Name: "team/v1.0.0", Notes: "- Add cluster demo"}}
			if diff := cmp.Diff(want, fake.Releases()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			o.Token = "wrong-7"
			if _, err := EnsureRelease(t.Context(), o, "v1.0.1", ""); err == nil || strings.Contains(err.Error(), "wrong-7") ||
				!strings.Contains(diag.Hint(err), "right to write releases") {
				t.Errorf("a bad token: %v (%s)", err, diag.Hint(err))
			}
		})
	}
}

// A forge that answers with anything at all makes no panic, and a refusal is no release.
func TestEnsureReleaseAtAHostileForge(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		for _, body := range []string{
			"", "null", "{}", "[]", `"x"`, "<html>", `{"html_url":"javascript:alert(1)","_links":{"self":"file:///x"}}`,
		} {
			for _, status := range []int{http.StatusOK, http.StatusNoContent, http.StatusForbidden, http.StatusInternalServerError} {
				said := func() (int, string) { return status, body }
				r, err := EnsureRelease(t.Context(), answering(t, kind, said, said), "v1.0.0", "")
				if err == nil && (status >= http.StatusBadRequest || !strings.HasPrefix(r.URL, "https://127.0.0.1")) {
					t.Errorf("%s: %+v with %d %q", kind, r, status, body)
				}
			}
		}
	}
}
