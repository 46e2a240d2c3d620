package forge

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/forge/forgetest"
)

// The same request twice is one pull request, on each forge; closed, it is a new one.
func TestOpen(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		t.Run(string(kind), func(t *testing.T) {
			fake := forgetest.New("s3cret")
			server := httptest.NewTLSServer(fake)
			defer server.Close()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			remote, err := url.Parse(server.URL + "/platform/fleet.git")
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Type: kind, Remote: remote, Token: "s3cret", CA: ca}
			r := Request{Branch: "fleetctl/x", Base: "main", Title: "Do x", Body: "why"}
			made, err := Open(t.Context(), o, r)
			if err != nil {
				t.Fatal(err)
			}
			want := &PullRequest{Number: 1, URL: server.URL + "/platform/fleet/pulls/1", Created: true}
			if diff := cmp.Diff(want, made); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			r.Title = "Do x better"
			if again, err := Open(t.Context(), o, r); err != nil || again.Created || again.Number != 1 {
				t.Errorf("again: %+v, %v", again, err)
			}
			kept := []forgetest.PullRequest{{Number: 1, Head: "fleetctl/x", Base: "main", Title: "Do x better", Body: "why", Open: true, Updated: 1}}
			if diff := cmp.Diff(kept, fake.PullRequests()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			fake.Close(1)
			if third, err := Open(t.Context(), o, r); err != nil || third.Number != 2 || !third.Created {
				t.Errorf("after it was closed: %+v, %v", third, err)
			}
			o.Token = "wrong"
			_, err = Open(t.Context(), o, r)
			if err == nil || strings.Contains(err.Error(), "wrong\"") || !strings.Contains(diag.Hint(err), "right to write pull requests") {
				t.Errorf("a bad token: %v (%s)", err, diag.Hint(err))
			}
			o.Token, o.Remote.Path = "s3cret", "/platform/other"
			if _, err = Open(t.Context(), o, r); err == nil || !strings.Contains(diag.Hint(err), "check the URL") {
				t.Errorf("an unknown repository: %v (%s)", err, diag.Hint(err))
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for raw, tc := range map[string]struct {
		options Options
		want    string
	}{
		"https://git.example.org/a/b":    {Options{Token: "t"}, "spec.git.forge"},
		"https://github.com/a/b.git":     {Options{}, "--git-token-file"},
		"https://github.com/b":           {Options{Token: "t"}, "an owner and a name"},
		"ssh://git@gitlab.acme.io/a/b/c": {Options{Token: "t"}, ""},
		"https://codeberg.org/a/b":       {Options{Token: "t"}, ""},
		"https://git.acme.io/a/b":        {Options{Token: "t", Type: "bitbucket"}, "one of github"},
	} {
		remote, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		tc.options.Remote = remote
		if err := Check(tc.options); (err == nil) != (tc.want == "") || !strings.Contains(diag.Hint(err), tc.want) {
			t.Errorf("%s: %v (%s)", raw, err, diag.Hint(err))
		}
	}
	remote, _ := url.Parse("https://git.example.org/a/b")
	if err := Check(Options{Remote: remote}); !errors.Is(err, ErrUnknownForge) {
		t.Error(err)
	}
	if got := web(&url.URL{Scheme: "ssh", Host: "git.acme.io:2222"}); got != "https://git.acme.io" {
		t.Error(got)
	}
}
