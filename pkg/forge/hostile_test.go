package forge

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
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
